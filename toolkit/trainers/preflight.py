"""Check MPI, or Gloo in its place, before a training: ``python -m toolkit.trainers.preflight --tasks N``.

Every rank runs it. Is the world that MPI reports the one that was started, do messages arrive, how fast, and
is every node as it should be? It loads no TensorFlow and takes about a second, where a training that began
wrongly may be noticed after a night. ``docs/trainers.md`` says what is checked, and what that proves.
Exit codes: 0 all is well, 1 it is not (a sentence for each thing that is wrong), 3 mpi4py is not installed.
"""

import array
import os
import sys
import threading
import time
from dataclasses import replace
from typing import TYPE_CHECKING, NoReturn

from toolkit.trainers.checks import ring
from toolkit.trainers.checks.links import over_mpi
from toolkit.trainers.checks.node import look
from toolkit.trainers.checks.verdict import PreflightVerdict, judge
from toolkit.trainers.checks.wanted import Requirements, parse
from toolkit.trainers.ranks.launcher import started_rank

if TYPE_CHECKING:
    from mpi4py.MPI import Comm

_TIME_TO_SPEAK = 2.0
"""Seconds that silent ranks wait before they fail, as a launcher may end all ranks with the first."""

_LINES = 5
"""Sentences that are told; on thousands of nodes the rest would hide them."""

_NUMBERS = 1 << 16
"""Numbers in the test message; half a megabyte does not pass by the same path as a few bytes."""


def main(words: list[str] | None = None) -> int:
    """Check, and return the exit code."""
    wanted = parse(words)
    begun = time.monotonic()
    if ring.wired():
        verdict, interface = ring.check_ring(os.environ, wanted)
        return _tell(verdict, wanted, f"Gloo{f' over {interface}' * bool(interface)}", begun)
    try:
        from mpi4py import MPI
    except ImportError as error:
        return _fail(f"mpi4py cannot be loaded: {error}", code=3)
    world = MPI.COMM_WORLD
    if world.Get_size() != wanted.tasks:
        return _fail(_wrong_size(world.Get_size(), wanted.tasks))
    watch = threading.Timer(wanted.seconds, _give_up, (wanted.seconds,))
    watch.daemon = True
    watch.start()
    problem = check_messages(world)
    verdict = (
        PreflightVerdict((problem,)) if problem else check_nodes(world, MPI.Get_processor_name(), wanted)
    )
    watch.cancel()
    return _tell(verdict, wanted, library_name(MPI.Get_library_version()), begun)


def check_nodes(world: "Comm", host: str, wanted: Requirements) -> PreflightVerdict:
    """Look at all nodes and the network between them; return what rank 0 makes of it."""
    rank, hosts = world.Get_rank(), world.allgather(host)
    first = hosts.index(host) == rank
    facts = look(wanted, rank, host, first=first)
    nodes = world.Split(0 if first else 1, rank)
    if first and nodes.Get_size() > 1:
        facts = replace(facts, gbit=over_mpi(nodes))
    nodes.Free()
    # All ranks leave a barrier within what a message takes.
    world.Barrier()
    now = time.time()
    facts = replace(facts, ahead=now - world.bcast(now))
    found = world.gather(facts)
    verdict: PreflightVerdict = world.bcast(judge(found, wanted) if found else None)
    return verdict


def _tell(verdict: PreflightVerdict, wanted: Requirements, library: str, begun: float) -> int:
    """Let the first process say what was found, and return the exit code."""
    if started_rank(os.environ) == 0:
        for warning in verdict.warnings[:_LINES]:
            print(f"preflight: warning: {warning}.", file=sys.stderr, flush=True)
    if verdict.failures:
        more = len(verdict.failures) - _LINES
        rest = [f"and {more} more"] if more > 0 else []
        return _fail(*verdict.failures[:_LINES], *rest)
    if started_rank(os.environ) == 0:
        took = time.monotonic() - begun
        speed = f", {verdict.slowest:.2g} Gbit/s from node to node" if verdict.slowest else ""
        print(
            f"preflight: {_ranks(wanted.tasks, verdict.nodes)}, {library}; messages arrive{speed} "
            f"({took:.2f} s)",
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


def _fail(*sentences: str, code: int = 1) -> int:
    # MPI's own rank does not tell who speaks: where every rank is alone, each is number 0.
    if started_rank(os.environ) == 0:
        for sentence in sentences:
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
