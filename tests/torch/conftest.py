"""Lets the tests of this folder import shared test code, gives them the fixture `cluster`, and reports
their results to `./dev test`."""
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

from pods import cluster  # noqa: E402, F401
from pytest_summary import pytest_runtest_logreport, pytest_sessionfinish  # noqa: E402, F401
