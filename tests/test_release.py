"""What a release consists of besides the code: files that parse, and versions and bounds that agree."""

import functools
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import exactshap

ROOT = Path(__file__).parent.parent
TOML = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = TOML["project"]
YAML = [
    *sorted((ROOT / ".github").rglob("*.yml")),
    ROOT / ".pre-commit-config.yaml",
    ROOT / "CITATION.cff",
    ROOT / "packaging" / "conda" / "recipe.yaml",
]
PAPERS = 6  # five, and the theorem that they stand on


@pytest.fixture
def read():
    yaml = pytest.importorskip("yaml")
    return lambda path: yaml.safe_load((ROOT / path).read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", YAML, ids=lambda path: path.name)
def test_files_parse(path, read):
    assert read(path)


def test_one_version_everywhere(read):
    released = exactshap.__version__.split(".dev")[0]
    assert read("CITATION.cff")["version"] == released
    assert read("packaging/conda/recipe.yaml")["context"]["version"] == released
    first = re.search(r"^## (?!Unreleased)(\S+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)[1]
    assert first == released


def test_the_papers_are_cited_with_title_and_authors(read):
    references = read("CITATION.cff")["references"]
    page = re.sub(r"\s+", " ", (ROOT / "docs" / "cite.md").read_text(encoding="utf-8"))
    assert len(references) == PAPERS
    for paper in references:
        assert paper["title"] in page
        assert paper["url"] in page
        assert all(author["family-names"] in page for author in paper["authors"])


def test_the_recipe_asks_for_what_the_package_asks_for(read):
    asked = {re.sub(r"\s", "", one) for one in read("packaging/conda/recipe.yaml")["requirements"]["run"]}
    assert asked == {*PROJECT["dependencies"], f"python{PROJECT['requires-python']}"}
    extras = {bound for extra in PROJECT["optional-dependencies"].values() for bound in extra}
    optional = {re.sub(r"\s|-base", "", one) for one in read("packaging/conda/recipe.yaml")["requirements"]["run_constraints"]}
    assert optional <= extras


def test_badges_say_what_the_package_says():
    badges = ROOT / "docs" / "img" / "badges"
    oldest = PROJECT["requires-python"].removeprefix(">=")
    assert f"python: {oldest}+" in (badges / "python.svg").read_text(encoding="utf-8")
    assert f"license: {PROJECT['license']}" in (badges / "license.svg").read_text(encoding="utf-8")
    assert (Path(exactshap.__file__).parent / "py.typed").exists()


def test_workflows_run_what_is_documented(read):
    matrix = read(".github/workflows/test.yml")["jobs"]["newest"]["strategy"]["matrix"]
    assert matrix["python"][0] == PROJECT["requires-python"].removeprefix(">=")
    assert {name.split("-")[0] for name in matrix["os"]} == {"ubuntu", "macos", "windows"}
    steps = read(".github/workflows/docs.yml")["jobs"]["build"]["steps"]
    command = next(step["run"] for step in steps if "sphinx" in step.get("run", ""))
    assert command in (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    builds = TOML["tool"]["cibuildwheel"]["build"]
    assert builds == [f"cp{python.replace('.', '')}-*" for python in matrix["python"]]


def test_the_release_builds_and_tests_on_the_same_platforms(read):
    jobs = read(".github/workflows/release.yml")["jobs"]
    built, tested = (jobs[name]["strategy"]["matrix"]["os"] for name in ("wheels", "test"))
    assert built == tested
    assert {name.split("-")[0] for name in built} == {"ubuntu", "macos", "windows"}


def test_actions_are_named_by_commit():
    text = "".join(path.read_text(encoding="utf-8") for path in (ROOT / ".github" / "workflows").glob("*.yml"))
    used = re.findall(r"uses: (.+)", text)
    assert len(used) > 10
    assert all(re.fullmatch(r"[\w/-]+@[0-9a-f]{40} # v[\d.]+", one) for one in used)


@pytest.fixture
def native(monkeypatch):
    """The build script, as for another platform: ``EXACTSHAP_TARGET``."""
    monkeypatch.delenv("EXACTSHAP_LEVELS", raising=False)
    spec = importlib.util.spec_from_file_location("native_build", ROOT / "src" / "native" / "build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_wheels_of_other_platforms_are_named_for_them_and_hold_all_their_levels(native, monkeypatch):
    tags = pytest.importorskip("packaging.tags")
    names = {"windows": "exactshap.dll", "macos": "exactshap.dylib", "linux": "exactshap.so"}
    mac = [tag for arch in ("arm64", "x86_64") for tag in tags.mac_platforms((14, 0), arch)]
    for target, tag in native.TARGETS.items():
        monkeypatch.setenv("EXACTSHAP_TARGET", target)
        architecture, system = target.split("-")[0], target.split("-")[1].split(".")[0]
        assert native.platform_tag() == tag
        assert native.library_name() == names[system]
        assert list(native._levels(native._compiler())) == (["v2", "v3", "v4"] if architecture == "x86_64" else ["base"])
        assert native.requirements() == native.ZIG
        named = [flag for flag in native._link_flags(native._compiler()) if "install_name" in flag]
        assert named == ["-Wl,-install_name,@rpath/exactshap.dylib"] * (
            system == "macos"
        )  # not the folder that it was linked in
        assert tag.endswith({"x86_64": ("x86_64", "amd64"), "aarch64": ("aarch64", "arm64")}[architecture])
        assert system != "macos" or tag in mac
    assert TOML["tool"]["cibuildwheel"]["windows"]["environment"]["EXACTSHAP_TARGET"] in native.TARGETS
    page = (ROOT / "docs" / "native.md").read_text(encoding="utf-8")
    assert set(re.findall(r"\w+-(?:linux|macos|windows)[\w.-]*\w", page)) <= set(native.TARGETS)


@pytest.mark.skipif(sys.platform != "linux" or shutil.which("readelf") is None, reason="needs readelf on Linux")
def test_the_library_gives_plain_functions_and_needs_the_c_library_only():
    from exactshap._native import _library

    path = _library.library()._name
    read = functools.partial(subprocess.run, capture_output=True, text=True, check=True)
    lines = read(["readelf", "-W", "--dyn-syms", path]).stdout.split("\n")
    fields = [line.split() for line in lines if " UND " not in line]
    given = {words[7] for words in fields if len(words) == 8 and words[3] == "FUNC" and words[4] == "GLOBAL"}
    assert len(given) > 50
    assert {name for name in given if not name.startswith("exactshap_")} == set()
    needed = set(re.findall(r"\(NEEDED\).*\[(\w+)", read(["readelf", "-W", "-d", path]).stdout))
    if not os.environ.get("ASAN_OPTIONS"):  # else the sanitizers' own
        assert needed <= {"libc", "libm", "ld"}
