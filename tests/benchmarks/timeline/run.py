"""Measure the reading of a large timeline: python -m tests.benchmarks.timeline.run [--megabytes 200]."""

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.benchmarks.timeline.made import make

_SECONDS, _MEMORY = 30.0, 500e6
"""What issue and documentation promise for 200 MB."""


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--megabytes", type=int, default=200)
    size = options.parse_args().megabytes * 1_000_000
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "timeline.json"
        make(file, size)
        began = time.monotonic()
        toolkit = str(Path(sys.executable).with_name("toolkit"))
        subprocess.run([toolkit, "report", "--timeline", str(file)], check=True)
        seconds = time.monotonic() - began
        memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
        print(
            f"\n{file.stat().st_size / 1e6:.0f} MB in {seconds:.1f} s, with {memory / 1e6:.0f} MB of memory"
        )
    allowed = size / 200e6
    return int(seconds > max(_SECONDS * allowed, 5.0) or memory > _MEMORY)


if __name__ == "__main__":
    sys.exit(main())
