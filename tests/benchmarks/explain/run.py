"""Measure `toolkit explain` on long output: python -m tests.benchmarks.explain.run [--megabytes 12 200]."""

import argparse
import sys
import tempfile
from pathlib import Path

from tests.benchmarks.explain.made import KINDS, ROOT, make
from tests.measured import measured

_SECONDS = {12: 1.0}
_MOST = 10.0
"""Largest CPU time that toolkit promises: 1 s for 12 MB of output, and 10 s for other sizes."""

_MEMORY = 300e6
"""Largest memory in bytes that toolkit promises, for any size of output."""

_READER = "import sys; print(sum('error' in line.lower() for line in open(sys.argv[1])))"
"""A simple Python loop over the output's lines. Its time shows how fast the machine is."""


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--megabytes", type=int, nargs="+", default=[12, 200])
    sizes = options.parse_args().megabytes
    kept = [measure(kind, size) for size in sizes for kind in KINDS]
    return int(not all(kept))


def measure(kind, size):
    toolkit = str(Path(sys.executable).with_name("toolkit"))
    with tempfile.TemporaryDirectory() as folder:
        log, answer = Path(folder) / "job.out", Path(folder) / "answer"
        make(log, kind, size * 1_000_000)
        read = min(measured([sys.executable, "-c", _READER, str(log)]).cpu for _ in range(3))
        took = measured(["sh", "-c", 'exec "$0" explain "$1" > "$2"', toolkit, str(log), str(answer)])
        found = ROOT in answer.read_text("utf-8")
    most, times = _SECONDS.get(size, _MOST), took.cpu / read
    print(
        f"{kind:8} {size:4} MB: {took.cpu:.1f} s of {most:g}, {times:.1f} times a loop of {read:.2f} s, "
        f"{took.peak / 1e6:.0f} MB of {_MEMORY / 1e6:.0f}, {'root line' if found else 'NO ROOT LINE'}",
        flush=True,
    )
    return found and took.code == 0 and took.cpu <= most and took.peak <= _MEMORY


if __name__ == "__main__":
    sys.exit(main())
