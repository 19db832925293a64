"""Tests the contents of `pip install .`. Builds the wheel if sources have changed, unpacks it, and
examines it."""

import hashlib
import os
import pathlib
import re
import subprocess
import sys
import zipfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
BUILD = pathlib.Path(os.environ.get("WHEEL_BUILD", ROOT / "build" / "wheel"))
SOURCES = ["CMakeLists.txt", "LICENSE", "bindings", "cmake", "collectives", "control", "core", "docs/python.md", "include"]
SOURCES += ["pyproject.toml", "rendezvous", "tools", "transport"]
# Every Linux with a C++ runtime has these libraries. The wheel must contain every other library that it uses.
SYSTEM = {"libc.so.6", "libm.so.6", "libstdc++.so.6", "libgcc_s.so.1", "libpthread.so.0", "libdl.so.2", "librt.so.1"}


def digest():
    """Returns a digest of everything from which a wheel is built."""
    total = hashlib.sha256(sys.version.encode())
    for name in SOURCES:
        path = ROOT / name
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if file.is_file() and file.suffix != ".pyc":
                total.update(str(file).encode() + file.read_bytes())
    return total.hexdigest()


def build():
    """Returns the wheel. Builds it if sources have changed since the last build."""
    stamp = BUILD / "dist" / "digest"
    made = sorted((BUILD / "dist").glob("*.whl"))
    if made and stamp.exists() and stamp.read_text() == digest():
        return made[-1]
    for old in made:
        old.unlink()
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-build-isolation", "--no-deps", str(ROOT)]
    command += ["-C", f"build-dir={BUILD}", "-w", str(BUILD / "dist")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-8000:]
    stamp.write_text(digest())
    return next((BUILD / "dist").glob("*.whl"))


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    with zipfile.ZipFile(build()) as wheel:
        for member in wheel.infolist():
            extracted = pathlib.Path(wheel.extract(member, folder))
            extracted.chmod(member.external_attr >> 16 & 0o777 or 0o644)
    return folder


def dynamic(path):
    return subprocess.run(["readelf", "-d", path], check=True, capture_output=True, text=True).stdout


def objects(folder):
    return [p for p in folder.rglob("*") if p.is_file() and p.read_bytes()[:4] == b"\x7fELF"]


def test_contents(unpacked):
    for name in ("__init__.py", "_core.pyi", "py.typed", "include/tutti/c.h", "include/tutti/c_types.h", "bin/tutti", "libtutti.so.*",
                 "_core*.so"):
        assert list((unpacked / "tutti").glob(name)), name
    assert not list(unpacked.rglob("*.a")) and not list(unpacked.rglob("*.cmake"))
    metadata = next(unpacked.glob("*.dist-info/METADATA")).read_text()
    version = re.search(r"project\(tutti VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text()).group(1)
    assert f"\nVersion: {version}\n" in metadata
    assert "tutti = tutti.__main__:main" in next(unpacked.glob("*.dist-info/entry_points.txt")).read_text()


def test_needs_nothing_that_it_does_not_bring_along(unpacked):
    found = objects(unpacked)
    bundled = {path.name for path in found}
    assert len(found) >= 3
    for path in found:
        table = dynamic(path)
        needed = set(re.findall(r"\(NEEDED\).*\[(.*)\]", table))
        assert {n for n in needed - SYSTEM - bundled if not n.startswith("ld-linux")} == set(), path
        for search in re.findall(r"\((?:RPATH|RUNPATH)\).*\[(.*)\]", table):
            assert all(folder.startswith("$ORIGIN") for folder in search.split(":")), (path, search)
        if needed & bundled:
            assert "$ORIGIN" in table, path


def test_runs_where_nothing_else_is(unpacked):
    environment = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(unpacked), "TUTTI_TIMEOUT": "60s"}
    program = "import tutti; c = tutti.init(); c.all_reduce(bytearray(9)).wait(); print(tutti.__file__, c.size)"
    command = [sys.executable, "-S", "-m", "tutti", "run", "-n", "2", "--", sys.executable, "-S", "-c", program]
    done = subprocess.run(command, env=environment, cwd="/", capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{unpacked}/tutti/__init__.py 2\n" * 2


def test_the_library_shows_only_its_own_names(unpacked):
    library = next((unpacked / "tutti").glob("libtutti.so.*"))
    symbols = subprocess.run(["nm", "-DC", "--defined-only", library], check=True, capture_output=True, text=True)
    names = [line.split(" ", 2)[2] for line in symbols.stdout.splitlines()]
    ours = ("tutti::", "tutti_", "typeinfo for tutti::", "typeinfo name for tutti::", "vtable for tutti::")
    assert names and [name for name in names if not name.startswith(ours)] == []


@pytest.mark.parametrize("package, debian", [("spdlog", "libspdlog-dev"), ("CLI11", "libcli11-dev")])
def test_what_is_missing_is_named_as_debian_calls_it(package, debian, tmp_path):
    command = [sys.executable, "-m", "pip", "wheel", "--no-build-isolation", "--no-deps", str(ROOT), "-w", str(tmp_path)]
    command += ["-C", f"build-dir={tmp_path}/build", "-C", f"cmake.define.CMAKE_DISABLE_FIND_PACKAGE_{package}=ON"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode != 0
    said = re.sub(r"\s+", " ", done.stdout + done.stderr)
    assert f"sudo apt-get install {debian} " in said  # only the missing package is named
    assert "tutti could not be built" in said
