"""Build a preflight that checks whether all ranks of a program without MPI connect to each other."""

import posixpath
import re
from collections.abc import Iterator, Sequence

from toolkit.data import shipped_folder
from toolkit.engine.planning.proposal import RANKS_FILE
from toolkit.model.job import JobSpec
from toolkit.model.prediction import Plan
from toolkit.program.torch import OPTIONS

FILE = "toolkit-peers.py"
"""The name of the program that connects and counts the ranks; the job script writes this file."""

_PROGRAMS = {"torch", "jax", "tf-config"}
_STARTERS = {"", "torchrun"}
_PYTHON = re.compile(r"python(\d(\.\d+)?)?")


def has_check(plan: Plan) -> bool:
    """Return whether the preflight can check the connections of the ranks.

    This check needs a plan in which the job script sets the addresses of the ranks.
    """
    return plan.program in _PROGRAMS and plan.starter in _STARTERS and RANKS_FILE in plan.wrapper


def words(spec: JobSpec, plan: Plan) -> tuple[str, ...]:
    """Return the command that checks whether the ranks connect.

    The command starts with the same ``python`` or ``torchrun`` as the user's command, if possible.
    """
    gpus = ("--gpus", str(spec.gpus_per_node)) if spec.gpus_per_node else ()
    return (*_start(spec.command, plan), posixpath.join(spec.directory, FILE), plan.program, *gpus)


def program_text() -> str:
    """Return the text of the program that connects and counts the ranks."""
    return (shipped_folder("slurm") / FILE).read_text(encoding="utf-8")


def _start(command: Sequence[str], plan: Plan) -> tuple[str, ...]:
    head = posixpath.basename(command[0])
    if plan.starter and head == "torchrun":
        return (command[0], *_options(command[1:]))
    if plan.starter and _PYTHON.fullmatch(head):
        return (command[0], "-m", "torch.distributed.run", *_options(command[command.index("-m") + 2 :]))
    if plan.starter:
        return ("torchrun",)
    return (command[0] if _PYTHON.fullmatch(head) else "python3",)


def _options(words: Sequence[str]) -> Iterator[str]:
    """Yield torchrun's own options: the words between ``torchrun`` and the program."""
    rest = iter(words)
    for word in rest:
        if not word.startswith("-"):
            return
        option, separator, _ = word.lstrip("-").partition("=")
        known = OPTIONS.get(option.replace("_", "-"))
        if known is not None:
            yield word
            if not known.flag and not separator:
                yield next(rest, "")
