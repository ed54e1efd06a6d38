"""Run a program in turns of some seconds, and print its images per second in each turn.

The machine's load then has the same effect on all programs that take turns. Between the turns of a program,
every process of its container is stopped, including a launcher's processes, so that all ranks stop together.

Usage: held.py WORDS…   (of a trainer that prints the duration of each step)

BENCH_BATON is a folder that all programs see. Its file ``turn`` has the number of the program whose turn it
is (BENCH_ME is this program's number), or ``over``. This program creates a file ``ready-…`` after its first
step.
"""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import uuid
from pathlib import Path

_PAUSE = 0.02
_STEP = re.compile(r"\d+/\d+  ([\d.]+) s  ([\d.,]+) images/s")


class Held:
    """A running program, its steps, and its turns; times are from the monotonic clock."""

    def __init__(self, words):
        self.program = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.steps, self.turns, self.said = [], [], []
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for line in self.program.stdout:
            self.said.append(line)
            if step := _STEP.search(line):
                now, seconds, rate = time.monotonic(), float(step[1]), float(step[2].replace(",", ""))
                self.steps.append((now - seconds, now, seconds * rate))

    def wait(self, until):
        while not until():
            if self.program.poll() is not None:
                self.reader.join(5)
                sys.exit("".join(self.said[-20:]))
            time.sleep(_PAUSE)

    def take_turns(self, folder, me):
        self.wait(lambda: self.steps)
        send(signal.SIGSTOP)
        (folder / f"ready-{uuid.uuid4().hex}").touch()
        while True:
            self.wait(lambda: whose(folder) in (me, "over"))
            if whose(folder) == "over":
                break
            send(signal.SIGCONT)
            begun = time.monotonic()
            self.wait(lambda: whose(folder) != me)
            self.turns.append((begun, time.monotonic()))
            send(signal.SIGSTOP)

    def rates(self):
        found = []
        for begun, ended in self.turns:
            whole = [(b - a, images) for a, b, images in self.steps if begun <= a and b <= ended]
            if not whole:
                sys.exit(f"no step was done within a turn of {ended - begun:.0f} s")
            found.append(sum(images for _, images in whole) / sum(seconds for seconds, _ in whole))
        return found


def whose(folder):
    """Return the number of the program whose turn it is; empty before the first turn."""
    turn = folder / "turn"
    return turn.read_text() if turn.exists() else ""


def send(number):
    """Send a signal to all processes of this container except its first process and this one."""
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and int(folder.name) not in (1, os.getpid()):
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(folder.name), number)


if __name__ == "__main__":
    held = Held(sys.argv[1:])
    held.take_turns(Path(os.environ["BENCH_BATON"]), os.environ["BENCH_ME"])
    print("bench:", json.dumps({"rates": held.rates()}))
    sys.stdout.flush()
    send(signal.SIGKILL)
