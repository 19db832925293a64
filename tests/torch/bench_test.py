"""Tests which sizes the benchmark (bench.py) measures."""
import pytest

from bench import sizes


@pytest.mark.parametrize("largest, expected", [
    (4, [4]), (5, [4, 5]), (8, [4, 8]), (63, [4, 8, 63]), (64, [4, 8, 64]), (65, [4, 8, 64, 65])])
def test_each_size_is_measured_once(largest, expected):
    assert list(sizes(largest)) == expected
