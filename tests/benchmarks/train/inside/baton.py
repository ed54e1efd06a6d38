"""Let two programs train one epoch each in turns, so that the machine's load affects both alike.

BENCH_BATON is a folder that both programs see, and BENCH_ME is 0 or 1. Without these variables, no program
waits. The first epoch, which compiles, is not timed and does not wait.
"""

import atexit
import os
import sys
import time
from pathlib import Path

_MOST_SECONDS = 300
_PAUSE = 0.002


class Baton:
    def __init__(self):
        folder = os.environ.get("BENCH_BATON")
        self.folder = Path(folder) if folder else None
        self.me = os.environ.get("BENCH_ME", "0")
        self.other = "0" if self.me == "1" else "1"
        self.begun = False
        if self.folder:
            atexit.register(self._say, f"over-{self.me}")

    def hand_on(self):
        """Wait while the other program trains one epoch; stop waiting if the other program exits."""
        if not self.folder:
            return
        if self.begun:
            beside = self.folder / f"turn-{self.me}"
            beside.write_text(self.other)
            beside.replace(self.folder / "turn")
        else:
            self.begun = True
            self._say(f"ready-{self.me}")
            self._wait(lambda: self._said(f"ready-{self.other}") or self._over())
        self._wait(lambda: self._turn() == self.me or self._over())

    def _turn(self):
        try:
            return (self.folder / "turn").read_text()
        except FileNotFoundError:
            return "0"

    def _over(self):
        return self._said(f"over-{self.other}")

    def _said(self, what):
        return (self.folder / what).exists()

    def _say(self, what):
        (self.folder / what).touch()

    def _wait(self, until):
        end = time.monotonic() + _MOST_SECONDS
        while not until():
            if time.monotonic() > end:
                sys.exit(f"the other program has not come to the end of an epoch for {_MOST_SECONDS} s")
            time.sleep(_PAUSE)
