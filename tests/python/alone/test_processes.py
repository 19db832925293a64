"""Tests how programs begin, are interrupted, and end. These tests need their own processes."""

import ast
import os
import pathlib
import signal
import subprocess
import sys

import pytest

import tutti
from tutti import _core
from worlds import ENVIRONMENT, finish, start, start_world

ROOT = pathlib.Path(__file__).resolve().parents[3]
EXAMPLES = ROOT / "examples" / "python"
def run_example(name, ranks):
    command = [os.environ["LAUNCHER"], "run", "-n", str(ranks), "--", sys.executable, str(EXAMPLES / name)]
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_needs_nothing_to_import():
    program = "import sys, tutti; print(sorted({'numpy', 'torch', 'ml_dtypes'} & set(sys.modules)))"
    assert finish(start(program)) == (0, "[]\n", "")


def test_alone_without_a_launcher():
    program = "import tutti; c = tutti.init(); c.all_reduce(bytearray(3)).wait(); print(c.rank, c.size)"
    assert finish(start(program)) == (0, "0 1\n", "")


def test_place_for_shell_scripts():
    environment = {**ENVIRONMENT, "RANK": "3", "WORLD_SIZE": "5", "MASTER_ADDR": "nowhere", "MASTER_PORT": "1"}
    for what, answer in (("rank", "3\n"), ("world_size", "5\n")):
        command = [sys.executable, "-m", "tutti", what]
        assert subprocess.run(command, env=environment, capture_output=True, text=True).stdout == answer
    wrong = {**environment, "RANK": "five"}
    done = subprocess.run([sys.executable, "-m", "tutti", "rank"], env=wrong, capture_output=True, text=True)
    assert done.returncode == 2 and "RANK" in done.stderr
    program = "import tutti; print(tutti.get_rank(), tutti.get_world_size())"
    environment = {name: environment[name] for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")}
    assert finish(start(program, **environment))[1] == "3 5\n"


def test_meeting_may_take_for_ever():
    program = "import tutti; comm = tutti.init(timeout=float('inf')); comm.barrier().wait()"
    for rank in start_world(2, program):
        assert finish(rank) == (0, "", "")


# tutti closes all open communicators when a program ends. So no rank counts as dead.
def test_programs_may_just_end():
    program = "import tutti; comm = tutti.init(); comm.barrier().wait(); keep = [comm]; keep.append(keep)"
    for rank in start_world(3, program):
        assert finish(rank) == (0, "", "")


SURVIVING = """
import os, signal, tutti
comm = tutti.init()
comm.barrier().wait()
if comm.rank == 1:
    os.kill(os.getpid(), signal.SIGKILL)
try:
    while True:
        comm.all_reduce(bytearray(8)).wait()
except tutti.PeerLostError as error:
    assert isinstance(error, ConnectionError)
    print(error.peer, "rank 1" in str(error))
comm, _ = comm.shrink()
comm.barrier().wait()
print(comm.size)
"""


def test_a_killed_rank_is_named_and_the_others_go_on():
    ranks = start_world(3, SURVIVING)
    outcomes = [finish(rank) for rank in ranks]
    assert outcomes[1][0] == -signal.SIGKILL
    for outcome in (outcomes[0], outcomes[2]):
        assert outcome == (0, "1 True\n2\n", "")


def test_example_numpy_all_reduce():
    assert "3 ranks: sums [3.0, 3.0, 30.0], largest [1.0, 2.0, 20.0]" in run_example("numpy_all_reduce.py", 3)


def test_example_train_digits():
    assert "all 4 ranks hold bitwise equal weights" in run_example("train_digits.py", 4)


@pytest.mark.parametrize("backend", ["tutti", "tcp"])
def test_example_train_digits_by_its_options(tmp_path, backend):
    command = [sys.executable, str(EXAMPLES / "train_digits.py"), "--world-size", "2", "--backend", backend,
               "--init-method", f"file://{tmp_path}/meet"]
    ranks = [subprocess.Popen([*command, "--rank", str(rank)], env=ENVIRONMENT, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True) for rank in range(2)]
    outcomes = [finish(rank) for rank in ranks]
    assert [outcome[0] for outcome in outcomes] == [0, 0], outcomes
    assert "all 2 ranks hold bitwise equal weights" in outcomes[0][1]


@pytest.mark.parametrize("name", [name for name in dir(tutti) if name.endswith("Error")])
def test_exceptions(name):
    kind = getattr(tutti, name)
    assert issubclass(kind, tutti.Error)
    assert issubclass(kind, RuntimeError)
    assert str(kind("text")) == "text"


def test_library_and_header_are_where_the_package_says():
    assert os.path.exists(os.path.join(tutti.get_include(), "tutti", "c.h"))
    assert os.path.exists(tutti.get_library())


def test_stub_describes_the_extension():
    """Tests that the extension has the functions and classes of the stub, and that each of these classes has
    the public members that the stub lists. The stub's classes whose names begin with an underscore are private
    names for types."""
    tree = ast.parse((ROOT / "bindings/python/tutti/_core.pyi").read_text())
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            assert callable(getattr(_core, node.name))
        elif isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            promised = {d.name for d in node.body if isinstance(d, ast.FunctionDef) and d.name != "__buffer__"}
            promised |= {d.target.id for d in node.body if isinstance(d, ast.AnnAssign)}
            has = {name for name in vars(getattr(_core, node.name)) if not name.startswith("_")}
            dunder = {name for name in promised if name.startswith("_")}
            assert promised - dunder == has
            assert all(hasattr(getattr(_core, node.name), name) for name in dunder)


def test_everything_public_is_documented():
    for name in ("Communicator", "Work", "ReduceOp", "Allocation"):
        kind = getattr(tutti, name)
        assert kind.__doc__, name
        for attribute, value in vars(kind).items():
            if not attribute.startswith("_") and not isinstance(value, tutti.ReduceOp):
                assert value.__doc__ and "\n\n" in value.__doc__ or isinstance(value, property), attribute
