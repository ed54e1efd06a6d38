"""Measure `toolkit explain` on long output: python -m tests.benchmarks.explain.run [--megabytes 12 200]."""

import argparse
import sys
import tempfile
from pathlib import Path

from tests.benchmarks.explain.made import KINDS, ROOT, make
from tests.measured import measured

_SECONDS = {("steps", 12): 1.0}
_MOST = 10.0
"""Seconds of processor time that toolkit promises: for a training of 12 MB, and for any output."""

_MEMORY = 300e6
"""Bytes of memory that toolkit promises, for each size."""


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--megabytes", type=int, nargs="+", default=[12, 200])
    sizes = options.parse_args().megabytes
    kept = [measure(kind, size) for size in sizes for kind in KINDS]
    return int(not all(kept))


def measure(kind, size):
    """Print what one output takes; return whether toolkit keeps what it promises."""
    toolkit = str(Path(sys.executable).with_name("toolkit"))
    with tempfile.TemporaryDirectory() as folder:
        log, answer = Path(folder) / "job.out", Path(folder) / "answer"
        make(log, kind, size * 1_000_000)
        took = measured(["sh", "-c", 'exec "$0" explain "$1" > "$2"', toolkit, str(log), str(answer)])
        found = ROOT in answer.read_text("utf-8")
    most = _SECONDS.get((kind, size), _MOST)
    print(
        f"{kind:5} {size:4} MB: {took.cpu:.1f} s of {most:g}, {took.peak / 1e6:.0f} MB of memory of "
        f"{_MEMORY / 1e6:.0f}, {'root line' if found else 'NO ROOT LINE'}"
    )
    return found and took.code == 0 and took.cpu <= most and took.peak <= _MEMORY


if __name__ == "__main__":
    sys.exit(main())
