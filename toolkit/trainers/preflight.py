"""Check MPI or Gloo before a training: ``python -m toolkit.trainers.preflight --tasks N``.

Every rank runs the preflight. The preflight checks that the world of MPI or Gloo has N ranks, as many as the
launcher started, and that messages arrive. The preflight also checks the network's speed and every node's
state. The preflight does not load TensorFlow and takes about a second. Without a preflight, you may notice
only after hours that the ranks of a job did not connect correctly. ``docs/preflight.md`` describes the
checks. The exit status is 0 if all checks passed, 1 if a check failed, and 3 if Python cannot load mpi4py. If
a check failed, rank 0 prints a sentence for each fault.
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
from toolkit.trainers.checks.node import read_facts
from toolkit.trainers.checks.verdict import PreflightVerdict, judge
from toolkit.trainers.checks.wanted import Requirements, parse
from toolkit.trainers.ranks.launcher import started_rank

if TYPE_CHECKING:
    from mpi4py.MPI import Comm

_TIME_TO_SPEAK = 2.0
"""The number of seconds for which all ranks except rank 0 delay their exit after a fault, so that rank 0
reports the fault before the launcher stops all ranks.
"""

_LINES = 5
"""The preflight prints at most this number of faults, and at most this number of warnings. A job on thousands
of nodes can have thousands of faults.
"""

_NUMBERS = 1 << 16
"""The number of float64 values in the test message, which is half a megabyte long. MPI sends short and long
messages with different protocols. Gradients are long messages, so the test message must be long, too.
"""


def main(words: list[str] | None = None) -> int:
    """Run the checks with the options in ``words``, and return the exit status."""
    wanted = parse(words)
    begun = time.monotonic()
    if ring.connect_ring():
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


def check_nodes(world: "Comm", host: str, requirements: Requirements) -> PreflightVerdict:
    """Check all nodes and the network between the nodes. Return the same verdict on all ranks."""
    rank, hosts = world.Get_rank(), world.allgather(host)
    first = hosts.index(host) == rank
    facts = read_facts(requirements, rank, host, first=first)
    nodes = world.Split(0 if first else 1, rank)
    if first and nodes.Get_size() > 1:
        facts = replace(facts, gbit=over_mpi(nodes))
    nodes.Free()
    # Compare the clocks right after a barrier, because all ranks leave the barrier at nearly the same time.
    world.Barrier()
    now = time.time()
    facts = replace(facts, ahead=now - world.bcast(now))
    found = world.gather(facts)
    verdict: PreflightVerdict = world.bcast(judge(found, requirements) if found else None)
    return verdict


def _tell(verdict: PreflightVerdict, requirements: Requirements, library: str, start: float) -> int:
    """Print the verdict on rank 0, and return the exit status."""
    if started_rank(os.environ) == 0:
        for warning in verdict.warnings[:_LINES]:
            print(f"preflight: warning: {warning}.", file=sys.stderr, flush=True)
    if verdict.failures:
        more = len(verdict.failures) - _LINES
        rest = [f"and {more} more fault{'s' if more > 1 else ''}"] if more > 0 else []
        return _fail(*verdict.failures[:_LINES], *rest)
    if started_rank(os.environ) == 0:
        took = time.monotonic() - start
        speed = f", {verdict.slowest:.2g} Gbit/s from node to node" if verdict.slowest else ""
        print(
            f"preflight: {_ranks(requirements.tasks, verdict.nodes)}, {library}; messages arrive{speed} "
            f"({took:.2f} s)",
            flush=True,
        )
    return 0


def check_messages(world: "Comm") -> str:
    """Check that MPI numbers the ranks correctly, and that MPI sums an array correctly over all ranks. Return
    an error message, or an empty string if both are correct.
    """
    rank, size = world.Get_rank(), world.Get_size()
    if sorted(world.allgather(rank)) != list(range(size)):
        return "MPI gave two processes the same rank"
    sent = array.array("d", [rank + 1.0]) * _NUMBERS
    received = array.array("d", [0.0]) * _NUMBERS
    world.Allreduce(sent, received)
    wanted = size * (size + 1) / 2
    wrong = sum(number != wanted for number in received)
    # Add up all ranks' numbers of wrong values, so that all ranks return the same result.
    # If only some ranks returned a fault, the other ranks would hang in check_nodes().
    if world.allreduce(wrong):
        return f"MPI's messages are lost or damaged: the sum over {size} ranks is wrong"
    return ""


def library_name(text: str) -> str:
    """Return the name and version of an MPI library from the text of ``MPI_Get_library_version``.

    >>> library_name("Open MPI v4.1.4, package: Debian OpenMPI, ident: 4.1.4")
    'Open MPI 4.1.4'
    >>> library_name("MPICH Version:      4.0.2\\nMPICH Release date: ...")
    'MPICH 4.0.2'
    """
    first = text.strip("\0\n ").splitlines()[0].split(",")[0]
    return " ".join(first.replace(" Version:", " ").replace(" v", " ").split())


def _wrong_size(size: int, tasks: int) -> str:
    sentence = f"MPI reports a world of {size} where {tasks} tasks were started"
    if size == 1:
        return (
            f"{sentence}: each rank is a world of size 1. The launcher and the image's MPI have no common "
            "interface (PMIx, PMI-2); `toolkit doctor` names a launch mode that works"
        )
    return f"{sentence}: some ranks are missing or were started twice; start one rank for each task"


def _fail(*sentences: str, code: int = 1) -> int:
    # Do not ask MPI for the rank: if MPI did not connect the processes, each process has rank 0.
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
