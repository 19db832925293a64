"""Compiles the extension against the torch that is installed.

    python build.py OUTPUT --include FOLDER --library libtutti.so

One translation unit: torch's headers take longer to read than everything else.
"""
import argparse
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

SOURCES = ["error.cc", "work.cc", "completions.cc", "tensors.cc", "store.cc", "backend.cc", "reductions.cc", "moves.cc",
           "sparse.cc", "point_to_point.cc", "module.cc"]


def command(output, include, library):
    import torch
    from torch.utils.cpp_extension import include_paths

    torch_lib = Path(torch.__file__).parent / "lib"
    includes = [f"-I{include}"] + [f"-isystem{path}" for path in include_paths()]
    includes.append(f"-isystem{sysconfig.get_paths()['include']}")
    flags = ["-std=c++20", "-O2", "-fPIC", "-shared", "-fvisibility=hidden", "-Wall", "-DTORCH_EXTENSION_NAME=_C",
             f"-D_GLIBCXX_USE_CXX11_ABI={int(torch._C._GLIBCXX_USE_CXX11_ABI)}"]
    for name in ("COMPILER_TYPE", "STDLIB", "BUILD_ABI"):  # older torch: pybind11 types are shared only if equal
        value = getattr(torch._C, f"_PYBIND11_{name}", None)
        if value is not None:
            flags.append(f'-DPYBIND11_{name}="{value}"')
    libraries = [str(library), "-Wl,-rpath,$ORIGIN", f"-Wl,-rpath,{Path(library).parent}", f"-L{torch_lib}", "-ltorch_python", "-ltorch_cpu", "-lc10"]
    return [*os.environ.get("CXX", "c++").split(), *flags, *includes, "-x", "c++", "-", "-o", str(output), "-x", "none", *libraries]


def build(output, include, library):
    unit = "".join(f'#include <tutti/bindings/torch/{name}>\n' for name in SOURCES)
    temporary = Path(f"{output}.{os.getpid()}")
    subprocess.run(command(temporary, include, library), input=unit, text=True, check=True)
    temporary.rename(output)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("output", type=Path)
    parser.add_argument("--include", type=Path, required=True)
    parser.add_argument("--library", type=Path, required=True)
    options = parser.parse_args()
    build(options.output, options.include.resolve(), options.library.resolve())
    sys.exit(0)
