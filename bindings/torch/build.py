"""Compiles the extension against the torch that is installed.

    python build.py OUTPUT --include FOLDER --library libtutti.so
    python build.py --name

The second form prints the file name of an extension for this Python and this torch. All sources are one translation
unit, since torch's headers take longer to compile than all of the sources. Tests pass their own `--source`, and compile
another extension from it.
"""
import argparse
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

SOURCES = [f"bindings/torch/{name}.cc" for name in (
    "error", "fork", "streams", "work", "completions", "tensors", "store", "world", "backend", "reductions", "moves", "sparse",
    "point_to_point", "module")]


def name():
    """Returns the file name of an extension that fits this Python and this torch."""
    import torch

    return f"_C.torch-{torch.__version__}.{sys.implementation.cache_tag}.so"


def _command(output, includes, library):
    import torch
    from torch.utils.cpp_extension import include_paths

    folders = [*include_paths(), sysconfig.get_paths()["include"]]
    flags = ["-std=c++20", "-O2", "-fPIC", "-shared", "-fvisibility=hidden", "-Wall", "-DTORCH_EXTENSION_NAME=_C",
             f"-D_GLIBCXX_USE_CXX11_ABI={int(torch._C._GLIBCXX_USE_CXX11_ABI)}", *(f"-I{folder}" for folder in includes),
             *(f"-isystem{folder}" for folder in folders)]
    # Older versions of torch share pybind11's types only with extensions that define these macros with torch's values.
    for key in ("COMPILER_TYPE", "STDLIB", "BUILD_ABI"):
        value = getattr(torch._C, f"_PYBIND11_{key}", None)
        if value is not None:
            flags.append(f'-DPYBIND11_{key}="{value}"')
    # In a package the library is one folder above the extension ($ORIGIN/..). torch's libraries need no -rpath, since the
    # process has loaded them already.
    libraries = [str(library), "-Wl,-rpath,$ORIGIN/..", f"-Wl,-rpath,{library.parent}",
                 f"-L{Path(torch.__file__).parent / 'lib'}", "-ltorch_python", "-ltorch_cpu", "-lc10"]
    compiler = os.environ.get("CXX", "c++").split()
    return [*compiler, *flags, "-x", "c++", "-", "-o", str(output), "-x", "none", *libraries]


def build(output, includes, library, sources=SOURCES):
    """Compiles the extension. This takes half a minute and 1.1 GB of memory. The file appears only
    when it is complete."""
    unit = "".join(f'#include "{source}"\n' for source in sources)
    temporary = f"{output}.{os.getpid()}"
    command = _command(temporary, includes, library)
    try:
        subprocess.run(command, input=unit, text=True, check=True)
    except OSError as error:
        raise ImportError(f"tutti.torch cannot be compiled: the compiler {command[0]} cannot be started ({error.strerror}). "
                          "Install a C++20 compiler (Debian: g++), or set CXX to one.") from error
    except subprocess.CalledProcessError as error:
        raise ImportError(f"tutti.torch cannot be compiled: the compiler {command[0]} failed with status {error.returncode}; "
                          "what it said is above. It must know C++20, and needs 1.1 GB of memory; CXX names another.") from error
    os.replace(temporary, output)


def _main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("output", nargs="?")
    parser.add_argument("--include", type=Path, nargs="+")
    parser.add_argument("--library", type=Path)
    parser.add_argument("--source", nargs="+", default=SOURCES)
    parser.add_argument("--name", action="store_true")
    options = parser.parse_args()
    if options.name:
        print(name())
    else:
        build(options.output, options.include, options.library, options.source)


if __name__ == "__main__":
    _main()
