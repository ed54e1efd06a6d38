"""The words that start the ranks of a job, from what is asked for and the engine's plan; pure."""

import posixpath
from collections.abc import Iterable

import msgspec

from toolkit.engine.proposal import AGENT, GLOO_FILE, RANKS_FILE
from toolkit.errors import BadInput
from toolkit.launch.request import variables
from toolkit.launcher import of as launcher_of
from toolkit.model.facts import HostFacts
from toolkit.model.job import JobSpec
from toolkit.model.prediction import Plan
from toolkit.runtime import COMMAND as RUNTIME
from toolkit.runtime import named

MPIRUN_FILE = "toolkit-mpirun.sh"
"""What starts the daemons of an mpirun inside the container; the script makes it in its folder."""


def runtime_of(host: HostFacts) -> str:
    """Return the name under which the host's runtime was found; not every Apptainer has the old one too."""
    return (posixpath.basename(host.runtime.path) if host.runtime else "") or RUNTIME


def launch_words(
    spec: JobSpec,
    plan: Plan,
    command: Iterable[str],
    runtime: str = RUNTIME,
    dropped: Iterable[str] = (),
    binds: Iterable[str] = (),
) -> list[list[str]]:
    """Return the whole launch line for ``command``, in groups that a script shows a line each.

    ``dropped`` are more words for the ``env`` that drops variables, before those of the plan; ``binds`` are
    what this command needs besides the plan's.

    The groups are the launcher, variables to drop, the container with its options, the image, variables to
    set, and the ranks' command. Variables of the user come from a file: no value of theirs is an argument.
    """
    own = variables.names_of(spec)
    env = _inside_env({name: value for name, value in plan.env.items() if name not in own})
    given = ["sh", posixpath.join(spec.directory, variables.FILE)] if own else []
    wrapper = _wrapper_words(spec, plan)
    # The place of a rank comes before the user's variables, which win.
    told, inner = (wrapper, [*command]) if tells_ranks(plan) else ([], [*wrapper, *command])
    kind = named(runtime)
    container = kind.words(runtime, plan.container, (*plan.binds, *binds))
    if plan.inside and kind.IN_LAUNCHER:
        raise BadInput(
            f"--mode {plan.mode}: {kind.NAMES[0]} starts containers by srun alone", fix="use another --mode"
        )
    image, without = list(kind.image(spec)), _without(plan.unset, dropped)
    launcher = [plan.launcher[0], *_counts(spec, plan), *plan.launcher[1:]]
    if plan.inside:
        around = ["bash", posixpath.join(spec.directory, MPIRUN_FILE)] if by_agent(plan) else []
        launcher = ["--", *launcher] if around else launcher
        start = [around, without, container, image, launcher]
    elif kind.IN_LAUNCHER:
        start = [launcher, container, image, without]
    else:
        start = [launcher, without, container, image]
    groups = [*start, told, env, given, inner]
    return [group for group in groups if group]


def _counts(spec: JobSpec, plan: Plan) -> list[str]:
    """Return how many processes start where; a starter starts once a node, with the cores of its ranks."""
    launcher = launcher_of(plan)
    if not plan.starter:
        return launcher.counts(spec)
    cores = (spec.cpus_per_rank or 1) * spec.ranks_per_node
    words = launcher.counts(msgspec.structs.replace(spec, ranks_per_node=1))
    return [*words, f"--cpus-per-task={cores}"] if launcher.COMMAND == "srun" else words


def _without(names: Iterable[str], more: Iterable[str] = ()) -> list[str]:
    """Drop variables between launcher and container; a launcher adds its own after the script ran."""
    words = [*more, *(word for name in names for word in ("-u", name))]
    return ["env", *words] if words else []


def _inside_env(env: dict[str, str]) -> list[str]:
    """Set variables by ``env`` inside the container.

    ``APPTAINERENV_`` values are evaluated by a shell unless ``--no-eval`` (Apptainer 1.1) is known,
    and ``--env`` splits at commas; ``env`` takes any value as it is.
    """
    check_variables(env)
    return ["env", *(f"{name}={value}" for name, value in env.items())] if env else []


def check_variables(names: Iterable[str]) -> None:
    """Refuse names that no variable can have."""
    for name in names:
        variables.check_name(name, "--env")


def by_agent(plan: Plan) -> bool:
    """Tell whether an mpirun inside the container has its daemons started by the job script."""
    return plan.inside and AGENT in plan.launcher


def tells_ranks(plan: Plan) -> bool:
    """Return whether the job script makes a file that sets variables for the place of a rank."""
    return RANKS_FILE in plan.wrapper and plan.starter not in {"accelerate", "deepspeed"}


def gloo_file(spec: JobSpec, plan: Plan) -> str | None:
    """Return where the job has to have a wrapper for its ranks; ``None`` if the image has what it needs."""
    return posixpath.join(spec.directory, GLOO_FILE) if GLOO_FILE in plan.wrapper else None


def _wrapper_words(spec: JobSpec, plan: Plan) -> list[str]:
    made = {GLOO_FILE, RANKS_FILE}
    return [posixpath.join(spec.directory, word) if word in made else word for word in plan.wrapper]
