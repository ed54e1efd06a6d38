"""Parse the command-line options of the preflight, which set the conditions that the preflight checks."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from toolkit.trainers.words import count, positive, size


@dataclass(frozen=True)
class Requirements:
    """Conditions that ranks and nodes must meet before a training. The preflight does not check a condition
    that is ``None``.

    ``tasks`` is the number of ranks that the launcher started. ``seconds`` is the time limit for all messages
    of the preflight together. ``fabric_gbit`` is the expected network speed of one node in Gbit/s. ``output``
    is the output folder of the training, which needs ``min_free`` free bytes. TMPDIR needs ``min_free_tmp``
    free bytes. ``image`` is the path of the image file. ``max_skew`` is the largest permitted difference in
    seconds between the clocks of rank 0's node and another node.
    """

    tasks: int
    seconds: float = 60.0
    nodes: int | None = None
    gpus_per_node: int | None = None
    fabric_gbit: float | None = None
    output: Path | None = None
    min_free: int = 100 * 2**20
    min_free_tmp: int = 16 * 2**20
    image: Path | None = None
    max_skew: float = 60.0


def parse(words: Sequence[str] | None) -> Requirements:
    """Return the conditions in the command-line options ``words``. If an option is wrong, print an error
    message and exit with status 2.
    """
    parser = argparse.ArgumentParser(
        prog="python -m toolkit.trainers.preflight",
        description="Check the ranks of a job, their network and their nodes before a training.",
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("--tasks", type=count, required=True, metavar="N", help="number of ranks that the launcher started")
    limit = "total time limit in seconds for all messages between ranks (default: 60)"
    add("--seconds", type=positive, metavar="S", help=limit)
    add("--nodes", type=count, metavar="N", help="number of nodes of the job")
    add("--gpus-per-node", type=count, metavar="N", help="GPUs that the job has on each node")
    below = "expected network speed of a node in Gbit/s; the preflight warns below a fifth of this speed"
    add("--fabric-gbit", type=positive, metavar="G", help=below)
    add("--output", type=Path, metavar="DIR", help="existing folder to which the training writes")
    free = "required free space in the output folder, such as 2G (default: 100M)"
    add("--min-free", type=size, metavar="SIZE", help=free)
    add("--min-free-tmp", type=size, metavar="SIZE", help="required free space in TMPDIR (default: 16M)")
    add("--image", type=Path, metavar="FILE", help="image file, which must be the same on all nodes")
    skew = "largest permitted difference of a node's clock from rank 0's clock, in seconds (default: 60)"
    add("--max-skew", type=positive, metavar="S", help=skew)
    given = {name: value for name, value in vars(parser.parse_args(words)).items() if value is not None}
    return Requirements(**given)
