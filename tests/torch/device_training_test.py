"""Tests training on CUDA devices, over a fake of CUDA."""
import pytest
from device_training import TRAININGS
from fake_devices import library, run  # noqa: F401  the fixture is for all tests here


@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("trains", TRAININGS)
def test_training_learns_what_it_learns_in_one_process(trains, size):
    run(size, trains)
