"""Format the launch modes with their predicted outcomes, and the launch command of the chosen mode."""

from collections.abc import Iterator
from typing import get_args

from toolkit.engine.planning.proposal import AGENT, GLOO_FILE, RANKS_FILE
from toolkit.launch.jobscript.plan import runtime_of
from toolkit.model.facts import HostFacts
from toolkit.model.job import JobSpec
from toolkit.model.prediction import MODES, Outcome, Plan, Prediction, Request, Verdict
from toolkit.report.lines import ROOM, Style, command_lines, wrap_text
from toolkit.runtime import runtime_of_name

_MARKS = {"ok": ("✔", "good"), "unknown": ("?", "warn"), "unavailable": ("-", "dim")}
_FAILED = ("✘", "bad")
_MODE = max(map(len, MODES)) + 1
_OUTCOME = max(map(len, get_args(Outcome)))
_INDENT = 2 + 2 + _MODE + 1 + _OUTCOME + 1
"""The column of the page at which the reasons start, to the right of the mark, the mode and the outcome."""
_NEAR = 4
_ARROW = "→ "


def ways(verdict: Verdict, host: HostFacts, request: Request, style: Style, width: int) -> Iterator[str]:
    """Yield the lines about every launch mode."""
    for prediction in verdict.predictions:
        yield from way(prediction, verdict, host, request, style, width)


def way(
    prediction: Prediction, verdict: Verdict, host: HostFacts, request: Request, style: Style, width: int
) -> Iterator[str]:
    """Yield the lines about one launch mode: mark, mode, outcome and reason. For the chosen mode, also yield
    the launch command.
    """
    mark, colour = _MARKS.get(prediction.shown.rstrip("?"), _FAILED)
    chosen = prediction.mode == verdict.chosen
    name = style(f"{prediction.mode:{_MODE}}", "bold" if chosen else "")
    outcome = style(f"{prediction.shown:{_OUTCOME}}", colour)
    head = f"  {style(mark, colour)} {name} {outcome}"
    if width - _INDENT < ROOM:
        yield head.rstrip()
        yield from wrap_text(prediction.why, _NEAR, width)
    else:
        first, *rest = wrap_text(prediction.why, _INDENT, width) or [""]
        yield f"{head} {first.lstrip()}".rstrip()
        yield from rest
    if chosen and prediction.plan:
        words = allocation_words(prediction.plan, host, request)
        yield from (style(line, "good") for line in _arrow(words, width))


def _arrow(words: list[str], width: int) -> list[str]:
    """Return the lines of a launch command. If the command fits on one line, the command starts in the same
    column as the reason on the previous line. A longer command starts further left.
    """
    beside = command_lines(words, _INDENT - len(_ARROW), width, prefix=_ARROW)
    return (
        beside
        if len(beside) == 1 and len(beside[0]) <= width
        else command_lines(words, _NEAR, width, prefix=_ARROW)
    )


def allocation_words(plan: Plan, host: HostFacts, request: Request) -> list[str]:
    """Return the words of the command that a user types inside a Slurm allocation to start the ranks.

    If the launch needs files that only a job script creates, return a ``toolkit launch`` command instead.
    """
    command_of_rank = request.command or ("COMMAND",)
    if AGENT in plan.launcher or {GLOO_FILE, RANKS_FILE} & set(plan.wrapper) or plan.starter:
        gpus = ["--gpus-per-node", str(len(host.gpus))] if host.gpus and "--nv" in plan.container else []
        words = ["toolkit", "launch", "--mode", plan.mode, "--image", "IMAGE", *shape(request), *gpus]
        return [*words, "--", *command_of_rank]
    without = ["env", *(w for name in plan.unset for w in ("-u", name))] if plan.unset else []
    command = runtime_of(host)
    kind, image = runtime_of_name(command), JobSpec(name="", image="IMAGE", command=(), directory="")
    container = [*kind.words(command, plan.container, plan.binds), *kind.image(image)]
    env = ["env", *(f"{k}={v}" for k, v in plan.env.items())] if plan.env else []
    launcher = [plan.launcher[0], *_counts(plan.launcher[0], request), *plan.launcher[1:]]
    words = [*without, *container, *launcher] if plan.inside else [*launcher, *without, *container]
    return [*words, *env, *plan.wrapper, *command_of_rank]


def shape(request: Request) -> list[str]:
    """Return the options of ``toolkit launch`` that set the number of nodes and the number of ranks
    per node.
    """
    ranks = ["--ranks-per-node", str(request.ranks_per_node)] if request.ranks_per_node > 1 else []
    return ["--nodes", str(request.nodes), *ranks]


def _counts(launcher: str, request: Request) -> list[str]:
    ranks = ["-n", str(request.nodes * request.ranks_per_node)]
    if launcher != "srun":
        return ranks
    each = [f"--ntasks-per-node={request.ranks_per_node}"] if request.ranks_per_node > 1 else []
    return ["-N", str(request.nodes), *ranks, *each]
