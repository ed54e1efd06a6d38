"""Measure toolkit's times for a thousand nodes: ``python -m tests.benchmarks.scale.run [--nodes N] [--image
SIF]``.

The program measures work that needs no cluster. With ``--image``, it also measures on a virtual cluster whose
Slurm has N simulated nodes.
"""

import argparse
import os
import sys
from pathlib import Path

from tests.benchmarks.scale import away, there
from tests.benchmarks.scale.timed import HEAD


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.scale.run", description=__doc__)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--image", type=Path, help="a SIF to launch on the virtual cluster")
    arguments = parser.parse_args(words)
    print(f"{arguments.nodes:,} nodes, on {os.cpu_count()} cores with a load of {os.getloadavg()[0]:.1f}\n")
    print(*HEAD, sep="\n")
    taken = away.measured(arguments.nodes)
    print(*(one.row() for one in taken), sep="\n", flush=True)
    if arguments.image:
        print(*(one.row() for one in there.measured(arguments.nodes, arguments.image.resolve())), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
