"""Check MPI, or Gloo in its place, before a training: ``python -m toolkit.trainers.preflight --tasks N``.

Every rank runs it. Is the world that MPI reports the one that was started, and do messages arrive? It loads
no TensorFlow and takes well under a second, where a training that began wrongly may be noticed after a night.
Exit codes: 0 all is well, 1 it is not (one sentence, from one rank), 3 mpi4py is not installed.
"""

import array
import os
import sys
import threading
import time
from typing import TYPE_CHECKING, NoReturn

from toolkit.trainers import ring
from toolkit.trainers.launcher import started_rank
from toolkit.trainers.wanted import parse

if TYPE_CHECKING:
    from mpi4py.MPI import Comm

_TIME_TO_SPEAK = 2.0
"""Seconds that silent ranks wait before they fail, as a launcher may end all ranks with the first."""

_NUMBERS = 1 << 16
"""Numbers in the test message; half a megabyte does not pass by the same path as a few bytes."""


def main(words: list[str] | None = None) -> int:
    """Check, and return the exit code."""
    options = parse(words)
    begun = time.monotonic()
    if ring.wired():
        return _without_mpi(options.tasks, options.seconds, begun)
    try:
        from mpi4py import MPI
    except ImportError as error:
        return _fail(f"mpi4py cannot be loaded: {error}", code=3)
    world = MPI.COMM_WORLD
    if world.Get_size() != options.tasks:
        return _fail(_wrong_size(world.Get_size(), options.tasks))
    watch = threading.Timer(options.seconds, _give_up, (options.seconds,))
    watch.daemon = True
    watch.start()
    problem = check_messages(world)
    nodes = len(set(world.allgather(MPI.Get_processor_name())))
    watch.cancel()
    if problem:
        return _fail(problem)
    if world.Get_rank() == 0:
        library = library_name(MPI.Get_library_version())
        took = time.monotonic() - begun
        print(
            f"preflight: {_ranks(options.tasks, nodes)}, {library}; messages arrive ({took:.2f} s)",
            flush=True,
        )
    return 0


def _without_mpi(tasks: int, seconds: float, begun: float) -> int:
    """Check the ranks that Gloo wires up, and return the exit code."""
    problem, nodes, interface = ring.check_ring(os.environ, tasks, seconds)
    if problem:
        return _fail(problem)
    if started_rank(os.environ) == 0:
        took, over = time.monotonic() - begun, f" over {interface}" * bool(interface)
        print(
            f"preflight: {_ranks(tasks, nodes)}, Gloo{over}; messages arrive ({took:.2f} s)",
            flush=True,
        )
    return 0


def check_messages(world: "Comm") -> str:
    """Send numbers among all ranks; return what is wrong with what came back, or nothing."""
    rank, size = world.Get_rank(), world.Get_size()
    if sorted(world.allgather(rank)) != list(range(size)):
        return "MPI gave two ranks the same number"
    sent = array.array("d", [rank + 1.0]) * _NUMBERS
    received = array.array("d", [0.0]) * _NUMBERS
    world.Allreduce(sent, received)
    wanted = size * (size + 1) / 2
    wrong = sum(number != wanted for number in received)
    # Every rank must end alike, so that the one that speaks knows of the others.
    if world.allreduce(wrong):
        return f"MPI's messages do not arrive whole: the sum over {size} ranks is wrong"
    return ""


def library_name(told: str) -> str:
    """Return name and version of an MPI library from what it tells of itself.

    >>> library_name("Open MPI v4.1.4, package: Debian OpenMPI, ident: 4.1.4")
    'Open MPI 4.1.4'
    >>> library_name("MPICH Version:      4.0.2\\nMPICH Release date: ...")
    'MPICH 4.0.2'
    """
    first = told.strip("\0\n ").splitlines()[0].split(",")[0]
    return " ".join(first.replace(" Version:", " ").replace(" v", " ").split())


def _wrong_size(found: int, tasks: int) -> str:
    sentence = f"MPI reports a world of {found} where {tasks} tasks were started"
    if found == 1:
        return (
            f"{sentence}: every rank is alone. The launcher and the MPI of the image do not speak to each "
            "other (PMIx, PMI-2); `toolkit doctor` says which launch mode works"
        )
    return f"{sentence}: some ranks are missing or were started twice; ask for as many ranks as tasks"


def _fail(sentence: str, code: int = 1) -> int:
    # MPI's own rank does not tell who speaks: where every rank is alone, each is number 0.
    if started_rank(os.environ) == 0:
        print(f"preflight: {sentence}.", file=sys.stderr, flush=True)
    else:
        time.sleep(_TIME_TO_SPEAK)
    return code


def _give_up(seconds: float) -> NoReturn:
    code = _fail(f"MPI started, but its messages did not arrive within {seconds:g} s")
    os._exit(code)


def _ranks(size: int, nodes: int) -> str:
    return f"{size} rank{'s' * (size > 1)} on {nodes} node{'s' * (nodes > 1)}"


if __name__ == "__main__":
    sys.exit(main())
