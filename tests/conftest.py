"""Settings of the whole test suite: ``--shuffle`` orders unit tests at random, and ``--row`` selects rows of
table tests.
"""

import gc
import random
import signal
from itertools import groupby
from pathlib import Path

import pytest

from tests.unit.tables import WALKS

_UNIT = Path(__file__).parent / "unit"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("toolkit")
    group.addoption("--shuffle", type=int, metavar="SEED", help="shuffle the unit tests")
    group.addoption("--row", default="", metavar="TEXT", help="check only rows with TEXT in their name")


def pytest_configure(config: pytest.Config) -> None:
    # With the default thresholds, the garbage collector scans all collected tests often, which takes a tenth
    # of the run time.
    gc.set_threshold(20_000, 20, 50)
    # A shell without job control starts background commands with SIGINT ignored, and programs of the tests
    # would inherit this.
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    WALKS.only = config.getoption("--row")
    WALKS.seed = config.getoption("--shuffle")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Shuffle the files of unit tests, and the tests in each file; other tests keep their order."""
    seed = config.getoption("--shuffle")
    if seed is None:
        return
    chance = random.Random(seed)
    unit = [list(tests) for _, tests in groupby(filter(_is_unit, items), lambda item: item.path)]
    others = [item for item in items if not _is_unit(item)]
    chance.shuffle(unit)
    for tests in unit:
        chance.shuffle(tests)
    items[:] = [item for tests in unit for item in tests] + others


def pytest_collection_finish() -> None:
    gc.freeze()


def pytest_report_header(config: pytest.Config) -> str | None:
    seed = config.getoption("--shuffle")
    return None if seed is None else f"unit tests in the order of seed {seed}"


def _is_unit(item: pytest.Item) -> bool:
    return item.path.is_relative_to(_UNIT)
