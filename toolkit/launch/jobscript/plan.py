"""Build the command that starts the ranks of a job, from the job and the engine's launch plan."""

import posixpath
from collections.abc import Iterable

import msgspec

from toolkit.engine.planning.proposal import AGENT, GLOO_FILE, RANKS_FILE
from toolkit.errors import BadInput
from toolkit.launch.request import variables
from toolkit.launcher import launcher_of as launcher_of
from toolkit.model.facts import HostFacts
from toolkit.model.job import JobSpec
from toolkit.model.prediction import Plan
from toolkit.runtime import COMMAND as RUNTIME
from toolkit.runtime import runtime_of_name

MPIRUN_FILE = "toolkit-mpirun.sh"
"""The name of the script that starts the daemons of an mpirun that runs inside the container; the job script
writes this file.
"""


def runtime_of(host: HostFacts) -> str:
    """Return the command name of the host's container runtime; ``singularity`` if no runtime is known."""
    return (posixpath.basename(host.runtime.path) if host.runtime else "") or RUNTIME


def launch_words(
    spec: JobSpec,
    plan: Plan,
    command: Iterable[str],
    runtime: str = RUNTIME,
    unset_options: Iterable[str] = (),
    binds: Iterable[str] = (),
) -> list[list[str]]:
    """Return the launch command for ``command`` in groups of words; each group starts a new script line.

    The groups are the launcher, the variables to remove, the container's options, the image, the variables to
    set, and the ranks' command. The ranks read the user's variables from a file, so the process list does not
    show their values. ``unset_options`` are options such as ``-u NAME`` for the command ``env``; they
    remove variables in addition to the variables that the plan removes. ``binds`` are mounts in addition to
    the plan's mounts.
    """
    own = variables.names_of(spec)
    env = _inside_env({name: value for name, value in plan.env.items() if name not in own})
    variables_wrapper = ["sh", posixpath.join(spec.directory, variables.FILE)] if own else []
    wrapper = _wrapper_words(spec, plan)
    # Set a rank's number before the user's variables, so that a user's variable can override the number.
    ranks_wrapper, inner = (wrapper, [*command]) if tells_ranks(plan) else ([], [*wrapper, *command])
    kind = runtime_of_name(runtime)
    container = kind.words(runtime, plan.container, (*plan.binds, *binds))
    if plan.inside and kind.IN_LAUNCHER:
        raise BadInput(
            f"--mode {plan.mode}: {kind.NAMES[0]} starts containers only with srun",
            fix="use a `--mode` that starts the ranks with srun, such as `srun-pmix`",
        )
    image, without = list(kind.image(spec)), _unset_words(plan.unset, unset_options)
    launcher = [plan.launcher[0], *_counts(spec, plan), *plan.launcher[1:]]
    if plan.inside:
        around = ["bash", posixpath.join(spec.directory, MPIRUN_FILE)] if by_agent(plan) else []
        launcher = ["--", *launcher] if around else launcher
        start = [around, without, container, image, launcher]
    elif kind.IN_LAUNCHER:
        start = [launcher, container, image, without]
    else:
        start = [launcher, without, container, image]
    groups = [*start, ranks_wrapper, env, variables_wrapper, inner]
    return [group for group in groups if group]


def _counts(spec: JobSpec, plan: Plan) -> list[str]:
    """Return the launcher options with the numbers of nodes and processes.

    If a starter such as torchrun starts the ranks, the launcher runs this starter once on each node. If
    this launcher is srun, it gives the starter the cores for all ranks of the node.
    """
    launcher = launcher_of(plan)
    if not plan.starter:
        return launcher.counts(spec)
    cores = (spec.cpus_per_rank or 1) * spec.ranks_per_node
    words = launcher.counts(msgspec.structs.replace(spec, ranks_per_node=1))
    return [*words, f"--cpus-per-task={cores}"] if launcher.COMMAND == "srun" else words


def _unset_words(names: Iterable[str], unset_options: Iterable[str] = ()) -> list[str]:
    """Return the words ``env``, ``unset_options`` and ``-u NAME`` for each variable in ``names``. If there is
    no variable to remove, return no words.

    A launcher that runs outside the container may set some of these variables. Therefore, ``env`` comes after
    such a launcher in the launch command.
    """
    words = [*unset_options, *(word for name in names for word in ("-u", name))]
    return ["env", *words] if words else []


def _inside_env(env: dict[str, str]) -> list[str]:
    """Return the words of an ``env`` command that sets variables inside the container.

    The command ``env`` passes values unchanged. Apptainer's ``--env`` splits values at commas. A shell
    evaluates ``APPTAINERENV_`` values, unless Apptainer 1.1 or newer runs with ``--no-eval``.
    """
    check_variables(env)
    return ["env", *(f"{name}={value}" for name, value in env.items())] if env else []


def check_variables(names: Iterable[str]) -> None:
    """Raise :class:`BadInput` if the name of a variable is invalid."""
    for name in names:
        variables.check_name(name, "--env")


def by_agent(plan: Plan) -> bool:
    """Return whether the job script must start the daemons of an mpirun that runs inside the container."""
    return plan.inside and AGENT in plan.launcher


def tells_ranks(plan: Plan) -> bool:
    """Return whether the job script writes a file that sets each rank's number in variables such as RANK."""
    return RANKS_FILE in plan.wrapper and plan.starter not in {"accelerate", "deepspeed"}


def gloo_file(spec: JobSpec, plan: Plan) -> str | None:
    """Return the path of the Gloo wrapper in the job's folder; ``None`` if the plan does not use the
    wrapper.
    """
    return posixpath.join(spec.directory, GLOO_FILE) if GLOO_FILE in plan.wrapper else None


def _wrapper_words(spec: JobSpec, plan: Plan) -> list[str]:
    own_files = {GLOO_FILE, RANKS_FILE}
    return [posixpath.join(spec.directory, word) if word in own_files else word for word in plan.wrapper]
