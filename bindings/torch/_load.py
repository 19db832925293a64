"""Finds the extension that fits the installed torch. Compiles one for this version of torch if
there is none."""
import fcntl
import hashlib
import importlib.util
import os
import sys
from pathlib import Path

import torch

import tutti

from . import build


def _cached(name, include, library):
    """Returns the path for the compiled extension. The path contains a hash of the extension's sources and of the
    library's path."""
    key = hashlib.sha256(str(library).encode())
    for source in sorted((include / "bindings" / "torch").glob("*.[ch]*")):
        key.update(source.read_bytes())
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tutti" / key.hexdigest()[:16]
    return folder / name


def _compiled(name):
    include, library = Path(tutti.get_include()), Path(tutti.get_library())
    output = _cached(name, include, library)
    if output.exists():
        return output
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        lock = open(f"{output}.lock", "w")
    except OSError as error:
        raise ImportError(f"tutti.torch is compiled when it is first imported, and kept in {output.parent}, where nothing can "
                          f"be written: {error}. Set XDG_CACHE_HOME to another folder.") from error
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # only one of the ranks on this host compiles
        if not output.exists():
            print(f"tutti.torch: compiling for torch {torch.__version__}, once; it takes about half a minute", file=sys.stderr)
            build.build(output, [include], library)
    return output


def load():
    name = build.name()
    path = Path(__file__).parent / name  # this path exists in a build tree
    if not path.exists():
        path = _compiled(name)
    spec = importlib.util.spec_from_file_location("tutti.torch._C", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
