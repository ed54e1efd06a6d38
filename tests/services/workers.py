"""Give each parallel worker of a test run its own cluster, ports and folder."""

import contextlib
import fcntl
import hashlib
import os
from collections.abc import Iterator

from tests.services.program import ROOT

_SHARED = ROOT / "build" / "tests"
_WORKER = os.environ.get("PYTEST_XDIST_WORKER", "")

STATE = _SHARED / _WORKER
"""Folder for the clusters and job records of this worker, separate from the user's."""

CLUSTER = "test-" + hashlib.sha256(f"{ROOT}{_WORKER}".encode()).hexdigest()[:6]
"""Name of this worker's cluster. The name depends on the checkout, so that tests of two checkouts can run at
once.
"""


@contextlib.contextmanager
def one_at_a_time(what: str) -> Iterator[None]:
    """Hold a lock called ``what``, so that only one worker at a time makes the same image or file."""
    _SHARED.mkdir(parents=True, exist_ok=True)
    with (_SHARED / f"{what}.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield
