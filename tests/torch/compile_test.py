"""Tests how `import tutti.torch` finds its extension, and its error if the extension cannot be
compiled or stored."""
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import ranks

# As with an installed package, this program does not use the extension of the build tree.
COMPILING = """
import importlib, tutti.torch
try:
    importlib.import_module("tutti.torch._load")._compiled(tutti.torch.build.name())
except ImportError as error:
    print(error)
"""


@pytest.mark.parametrize("variable, value, words", [
    ("CXX", "/nowhere/c++", "the compiler /nowhere/c++ cannot be started (No such file or directory)"),
    ("CXX", "false", "the compiler false failed with status 1"),
    ("XDG_CACHE_HOME", "/dev/null/cache", "kept in /dev/null/cache/tutti/"),
])
def test_the_error_names_the_variable(variable, value, words, tmp_path):
    environment = {"XDG_CACHE_HOME": str(tmp_path), variable: value}
    done = subprocess.run([sys.executable, "-c", COMPILING], env=ranks.environment(**environment), capture_output=True,
                          text=True, timeout=ranks.DEADLINE_SECONDS)
    assert done.returncode == 0, done.stderr
    assert words in done.stdout and variable in done.stdout, done.stdout


def test_an_extension_of_other_sources_is_not_used(tmp_path):
    import importlib

    import tutti

    load = importlib.import_module("tutti.torch._load")
    include, library = tmp_path / "include", Path(tutti.get_library())
    shutil.copytree(Path(tutti.get_include()) / "bindings", include / "bindings")
    before = load._cached("extension", include, library)
    assert load._cached("extension", Path(tutti.get_include()), library) == before
    (include / "bindings" / "torch" / "work.cc").write_text("// another version")
    assert load._cached("extension", include, library) != before
