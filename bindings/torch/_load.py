"""Finds the extension that fits the installed torch, or compiles it: once for each version of torch."""
import fcntl
import hashlib
import importlib.util
import os
import sys
from pathlib import Path

import torch

import tutti

from . import build


def _tag():
    return f"torch-{torch.__version__}.{sys.implementation.cache_tag}"


def _cached(include, library):
    """Where a compiled extension is kept: another one for other sources, or another library."""
    key = hashlib.sha256(str(library).encode())
    for source in sorted((include / "tutti" / "bindings" / "torch").glob("*.[ch]*")):
        key.update(source.read_bytes())
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tutti"
    return folder / f"_C.{_tag()}.{key.hexdigest()[:16]}.so"


def _build(output, include, library):
    output.parent.mkdir(parents=True, exist_ok=True)
    with open(f"{output}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # ranks of a host start at the same time
        if not output.exists():
            print(f"tutti.torch: compiling for torch {torch.__version__}, once; it takes a minute", file=sys.stderr)
            build.build(output, include, library)


def load():
    package = Path(tutti.__file__).absolute().parent
    path = package / "torch" / f"_C.{_tag()}.so"
    if not path.exists():
        include, library = package / "include", (package / "lib" / "libtutti.so").resolve()
        path = _cached(include, library)
        if not path.exists():
            _build(path, include, library)
    spec = importlib.util.spec_from_file_location("tutti.torch._C", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
