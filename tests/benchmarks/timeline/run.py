"""Measure how fast toolkit reads a large timeline: python -m tests.benchmarks.timeline.run [--megabytes
200].
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path

from tests.benchmarks.timeline.made import make
from tests.measured import measured

_SECONDS, _MEMORY = 30.0, 500e6
"""Limits in seconds and bytes that the documentation promises for a timeline of 200 MB."""


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--megabytes", type=int, default=200)
    size = options.parse_args().megabytes * 1_000_000
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "timeline.json"
        make(file, size)
        began = time.monotonic()
        toolkit = str(Path(sys.executable).with_name("toolkit"))
        took = measured([toolkit, "report", "--timeline", str(file)], quiet=False)
        seconds = time.monotonic() - began
        megabytes, memory = file.stat().st_size / 1e6, took.peak / 1e6
        print(f"\n{megabytes:.0f} MB in {seconds:.1f} s, with {memory:.0f} MB of memory")
    allowed = size / 200e6
    return int(took.code != 0 or seconds > max(_SECONDS * allowed, 5.0) or took.peak > _MEMORY)


if __name__ == "__main__":
    sys.exit(main())
