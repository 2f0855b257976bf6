"""Compile ``src/native`` into one shared library: by hand (``python src/native/build.py``) and from ``hatch_build.py``.

Every file is compiled once for each level of instruction set and kept under ``build/native`` by a hash of all that it depends
on, so that only what changed is compiled again.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path

SOURCE = Path(__file__).resolve().parent
ROOT = SOURCE.parent.parent
IN_PLACE = ROOT / "src" / "exactshap" / "_native"  # where an installation from the working tree looks for the library
FLAGS = [
    *["-std=c++17", "-O3", "-ffp-contract=off", "-fno-math-errno", "-fno-exceptions", "-fno-rtti"],
    *["-fno-threadsafe-statics", "-fvisibility=hidden", "-Wall", "-Wextra"],
    "-nostdinc++",  # C's own headers: those of the C++ library take longer to read than most files of ours to compile
    "-g0",  # zig spends a quarter of its time on debugging data
]
LEVELS = {  # without fused multiply-add, which rounds once where v2 rounds twice
    "v2": ["-march=x86-64-v2"],
    "v3": ["-march=x86-64-v3", "-mno-fma"],
    "v4": ["-march=x86-64-v4", "-mno-fma", "-mprefer-vector-width=512"],
}
PROBE = "#include <math.h>\n#include <stdint.h>\n#include <stdlib.h>\n#include <string.h>\n#include <time.h>\nint one() { return 1; }\n"
TARGETS = {  # what zig calls a platform, and the platform tag of its wheel
    "x86_64-linux-gnu.2.17": "manylinux_2_17_x86_64",
    "aarch64-linux-gnu.2.17": "manylinux_2_17_aarch64",
    "x86_64-linux-musl": "musllinux_1_1_x86_64",
    "aarch64-macos.11.0": "macosx_11_0_arm64",
    "x86_64-macos.11.0": "macosx_11_0_x86_64",
    "x86_64-windows-gnu": "win_amd64",
}
ZIG = ["ziglang>=0.13"]


def files() -> list[Path]:
    """Return all native sources in a fixed order."""
    return sorted(path for path in SOURCE.rglob("*") if path.suffix in {".h", ".cpp"})


def sources_hash() -> str:
    """Return a hash of every native source: the library carries it, and a development tree is held against it."""
    digest = hashlib.sha256()
    for path in files():
        digest.update(path.relative_to(SOURCE).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def _zig() -> list[str]:
    return [sys.executable, "-m", "ziglang", "c++"]


@lru_cache
def system_compiler() -> list[str] | None:
    """Return the first compiler that takes C++17 and has the C headers, or None where only zig will do."""
    named = os.environ.get("EXACTSHAP_CXX") or os.environ.get("CXX")
    for candidate in [named] if named else ["c++", "g++", "clang++"]:
        command = shlex.split(candidate)
        if shutil.which(command[0]) and _takes(command):
            return command
    return None


def _takes(command: list[str]) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "probe.cpp")
        source.write_text(PROBE)
        levels = _levels(command)
        done = subprocess.run(
            [*command, *FLAGS, *levels[max(levels)], "-c", str(source), "-o", str(source.with_suffix(".o"))],
            capture_output=True,
        )
        return done.returncode == 0


def requirements() -> list[str]:
    """Return what pip must install to compile: nothing where there is a compiler."""
    return [] if not os.environ.get("EXACTSHAP_TARGET") and system_compiler() else ZIG


def _machine() -> tuple[str, str]:
    """Return the architecture and the operating system that are compiled for."""
    target = os.environ.get("EXACTSHAP_TARGET")
    if target:
        architecture, system = target.split("-")[:2]
        return architecture, {"linux": "Linux", "macos": "Darwin", "windows": "Windows"}[system.split(".")[0]]
    return platform.machine(), platform.system()


def _levels(command: list[str]) -> dict[str, list[str]]:
    """Return the levels of the architecture with their flags; zig has its own names for them, and keeps to -ffp-contract."""
    if _machine()[0].lower() not in {"x86_64", "amd64"}:
        return {"base": []}
    wanted = os.environ.get("EXACTSHAP_LEVELS", ",".join(LEVELS)).split(",")
    if "ziglang" in command:
        return {level: [f"-mcpu=x86_64_{level}", *LEVELS[level][2:]] for level in wanted}
    return {level: LEVELS[level] for level in wanted}


def library_name() -> str:
    """Return the name of the shared library on the target."""
    return "exactshap" + {"Windows": ".dll", "Darwin": ".dylib"}.get(_machine()[1], ".so")


def platform_tag() -> str:
    """Return the platform tag of the wheel."""
    target = os.environ.get("EXACTSHAP_TARGET")
    if target:
        return TARGETS[target]
    if _machine()[1] == "Darwin":
        return f"macosx_11_0_{_machine()[0]}"
    return sysconfig.get_platform().replace("-", "_").replace(".", "_")


def _compiler() -> list[str]:
    target = os.environ.get("EXACTSHAP_TARGET")
    if target:
        return [*_zig(), "-target", target]
    command = system_compiler()
    if command is None:
        if importlib.util.find_spec("ziglang") is None:
            raise SystemExit("No C++17 compiler was found. Install one (g++ or clang++), set CXX, or `pip install ziglang`.")
        command = _zig()
    return [*command, *(["-mmacosx-version-min=11.0"] if _machine()[1] == "Darwin" else [])]


def _link_flags(command: list[str]) -> list[str]:
    """Return what keeps the C++ library out: nothing of it is used."""
    is_mac = _machine()[1] == "Darwin"
    named = [f"-Wl,-install_name,@rpath/{library_name()}"] if is_mac else []  # else by the path that it is linked at
    if "ziglang" in command:  # as a C compiler it does not build the C++ library first
        return ["-shared", "-s", *named]
    return ["-shared", "-nostdlib++", *named] if is_mac else ["-shared", "-Wl,--as-needed"]


@lru_cache
def _text(source: Path) -> bytes:
    """Return a file with all that it includes of ours."""
    text = source.read_bytes()
    included = re.findall(rb'^#include "(.+)"', text, re.MULTILINE)
    return text + b"".join(_text((source.parent / name.decode()).resolve()) for name in included)


def _object(command: list[str], source: Path, level: str, flags: list[str], folder: Path, version: bytes) -> Path:
    """Compile one file for one level, unless the same was compiled before."""
    line = [*command, *FLAGS, *flags, f"-DEXACTSHAP_LEVEL={level}"]
    line += [] if _machine()[1] == "Windows" else ["-fPIC"]
    digest = hashlib.sha256(version + " ".join(line).encode() + _text(source)).hexdigest()[:16]
    out = folder / f"{source.stem}.{level}.{digest}.o"
    if not out.exists():
        part = out.with_suffix(f".{os.getpid()}.part.o")
        done = subprocess.run([*line, "-c", str(source), "-o", str(part)], capture_output=True, text=True, cwd=ROOT)
        sys.stderr.write(done.stderr)
        if done.returncode:
            raise SystemExit(f"{source.relative_to(ROOT)} ({level}) does not compile with {shlex.join(command)}.")
        part.replace(out)
    return out


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Wait while another process compiles into the folder: what it leaves is used. On Windows both compile."""
    with Path(folder, "lock").open("w") as lock:
        if importlib.util.find_spec("fcntl"):
            import fcntl

            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def build(out: Path, extra_flags: tuple[str, ...] = ()) -> Path:
    """Compile and link; return the library, replaced in one step so that programs which run keep theirs."""
    command, folder = _compiler(), ROOT / "build" / "native"
    folder.mkdir(parents=True, exist_ok=True)
    version = subprocess.run([*command, "--version"], capture_output=True, check=True).stdout
    jobs = []
    for path in files():
        if path.name == "library.cpp":
            jobs.append((path, "base", [f'-DEXACTSHAP_SOURCES="{sources_hash()}"']))
        elif path.suffix == ".cpp":
            jobs.extend((path, level, flags) for level, flags in _levels(command).items())
    jobs.sort(key=lambda job: -len(_text(job[0])))  # the longest first: none is waited for alone at the end
    with _alone(folder), ThreadPoolExecutor(os.cpu_count()) as pool:
        objects = list(pool.map(lambda job: _object(command, job[0], job[1], [*job[2], *extra_flags], folder, version), jobs))
    linker = ["cc" if part == "c++" and "ziglang" in command else part for part in command]
    out.mkdir(parents=True, exist_ok=True)
    libraries = [] if _machine()[1] == "Windows" else ["-lm"]
    with tempfile.TemporaryDirectory(dir=out) as part:  # under its own name: a library may hold that
        line = [*linker, *_link_flags(command), *extra_flags, *map(str, objects), *libraries]
        subprocess.run([*line, "-o", str(Path(part, library_name()))], check=True)
        Path(part, library_name()).replace(out / library_name())
    for old in set(folder.glob("*.o")) - set(objects):
        old.unlink(missing_ok=True)
    return out / library_name()


if __name__ == "__main__":
    print(build(IN_PLACE, tuple(sys.argv[1:])))
