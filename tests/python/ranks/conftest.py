"""These tests run on all ranks of a world at once, in the same order: `tutti run -n 3 -- python -m pytest ...`."""

import pytest

import tutti


@pytest.fixture(scope="session")
def comm():
    with tutti.init() as world:
        yield world


@pytest.fixture
def own(comm):
    """Provides a communicator that only one test uses. So the test can make the communicator fail."""
    part = comm.split(0)
    yield part
    part.close()
    comm.barrier().wait()
