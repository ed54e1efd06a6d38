"""Separate names and ports for each parallel worker of a test run."""

import contextlib
import fcntl
import hashlib
import os
from collections.abc import Iterator

from tests.services.program import ROOT

_SHARED = ROOT / "build" / "tests"
_WORKER = os.environ.get("PYTEST_XDIST_WORKER", "")

STATE = _SHARED / _WORKER
"""Clusters and job records of this worker, apart from the user's own."""

CLUSTER = "test-" + hashlib.sha256(f"{ROOT}{_WORKER}".encode()).hexdigest()[:6]
"""Two checkouts can be tested at once; leftovers of a killed run in one do not disturb the other."""


@contextlib.contextmanager
def one_at_a_time(what: str) -> Iterator[None]:
    """Lock a name, so that other workers do not make the same image or file at the same time."""
    _SHARED.mkdir(parents=True, exist_ok=True)
    with (_SHARED / f"{what}.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield
