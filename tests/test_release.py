"""What a release consists of besides the code: files that parse, and versions and bounds that agree."""

import re
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
PAPERS = 5


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
    first = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)[1]
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
