"""The options of ``toolkit launch`` that say what a job is: one for every field of a job specification."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar, get_args

import click

from toolkit.model.jobfile import Strategy
from toolkit.model.prediction import MODES
from toolkit.model.runtime import NAMES

_F = TypeVar("_F", bound=Callable[..., Any])
_COUNT = click.IntRange(min=1)
_NUMBER = click.IntRange(min=0)

_OPTIONS: tuple[tuple[tuple[str, ...], dict[str, Any]], ...] = (
    (("--image",), {"help": "SIF file, name of a recipe, or cluster:NAME  [default: tf2.15-cpu]"}),
    (("--runtime",), {"type": click.Choice(NAMES), "help": "Container runtime, if there is more than one"}),
    (("--site",), {"metavar": "NAME", "help": "Take modules, limits and ways of a site profile"}),
    (("--nodes",), {"type": _COUNT, "help": "Number of nodes  [default: 1]"}),
    (("--ranks-per-node",), {"type": _COUNT, "help": "Ranks on each node  [default: 1]"}),
    (("--cpus-per-rank",), {"type": _COUNT, "help": "Cores for each rank"}),
    (("--gpus-per-node",), {"type": _NUMBER, "help": "GPUs on each node"}),
    (("--gpu",), {"metavar": "TYPE", "help": "Type of GPU, as in v100"}),
    (("--gpu-bind",), {"metavar": "HOW", "help": "Show each rank some GPUs only: closest, single:1, …"}),
    (("--cpu-bind",), {"metavar": "HOW", "help": "Bind ranks to cores, sockets, … or none"}),
    (("--memory",), {"metavar": "SIZE", "help": "Memory of each node, as in 16G; 0 for all of it"}),
    (("--memory-per-cpu",), {"metavar": "SIZE", "help": "Memory for each core, in place of --memory"}),
    (("--time",), {"help": "Time limit, as sbatch takes it  [default: 01:00:00]"}),
    (("--partition",), {"help": "Slurm partition  [default: of a site, one that can run the job]"}),
    (("--account",), {"help": "Slurm account"}),
    (("--qos",), {"help": "Quality of service"}),
    (("--constraint",), {"metavar": "FEATURES", "help": "Features that nodes must have"}),
    (("--reservation",), {"metavar": "NAME", "help": "Reservation to run in"}),
    (("--nodelist",), {"metavar": "NODES", "help": "Nodes that must be among the job's"}),
    (("--exclude",), {"metavar": "NODES", "help": "Nodes that must not be"}),
    (("--licenses",), {"metavar": "NAME[:N]", "help": "Licences that the job needs"}),
    (("--exclusive/--no-exclusive",), {"default": None, "help": "Share the nodes with no other job"}),
    (("--array",), {"metavar": "RANGE", "help": "Submit once for each number, as in 0-7"}),
    (("--dependency",), {"metavar": "TYPE:JOB", "help": "Wait for other jobs, as in afterok:123"}),
    (("--begin",), {"metavar": "TIME", "help": "Start not before, as in now+2hours"}),
    (("--mail-type",), {"metavar": "WHEN", "help": "Send mail: END, FAIL, ALL, …"}),
    (("--mail-user",), {"metavar": "ADDRESS", "help": "To whom"}),
    (("--requeue/--no-requeue",), {"default": None, "help": "Go on in the queue where the job was stopped"}),
    (("--chain",), {"type": _NUMBER, "metavar": "N", "help": "Go on in up to N jobs, one after the other"}),
    (("--elastic/--no-elastic",), {"default": None, "help": "Go on with the nodes left when one dies"}),
    (("--min-nodes",), {"type": _COUNT, "metavar": "N", "help": "The least for --elastic  [default: 1]"}),
    (("--warning",), {"type": _NUMBER, "metavar": "S", "help": "Seconds before the limit to stop at"}),
    (("--output",), {"metavar": "FILE", "help": "File for the output, below the job's folder"}),
    (("--error",), {"metavar": "FILE", "help": "File for standard error, if it is to be another"}),
    (("--workdir",), {"metavar": "DIR", "help": "Working directory inside the container"}),
    (("--module", "modules"), {"multiple": True, "metavar": "NAME", "help": "Load a module in the job"}),
    (("--sbatch",), {"multiple": True, "metavar": "OPTION", "help": "Add an #SBATCH line: --sbatch=--hold"}),
    (("--mode",), {"type": click.Choice(MODES), "help": "Launch mode, in place of the engine's choice"}),
    (("--strategy",), {"type": click.Choice(get_args(Strategy)), "help": "How a trainer is distributed"}),
    (("--data",), {"metavar": "DIR", "help": "Folder of the data set on this machine, or cluster:NAME"}),
    (("--directory",), {"metavar": "DIR", "help": "Folder on the cluster for images, data and runs"}),
    (("--name",), {"help": "Job name; the trainer's by default"}),
    (("--env",), {"multiple": True, "metavar": "NAME[=VALUE]", "help": "Set a variable; NAME takes yours"}),
    (("--env-file",), {"metavar": "FILE", "help": "Take secret variables from a file of NAME=VALUE lines"}),
    (("--bind", "binds"), {"multiple": True, "metavar": "SRC[:DST[:ro]]", "help": "Bind a folder there"}),
    (("--user-site/--no-user-site",), {"default": None, "help": "Let Python read packages of ~/.local"}),
    (("--preflight/--no-preflight",), {"default": None, "help": "Check the MPI world before the training"}),
    (("--fabric-gbit",), {"type": _COUNT, "metavar": "G", "help": "Gbit/s of a node; preflight checks it"}),
    (("--min-free",), {"metavar": "SIZE", "help": "Space that preflight wants in the job's folder"}),
)  # fmt: skip


def job_options(function: _F) -> _F:
    """Add all of them to a command; what is not given is ``None`` there."""
    return job_options_without()(function)


def job_options_without(*names: str) -> Callable[[_F], _F]:
    """Return what adds all of them but some, such as ``--array``, to a command."""

    def add(function: _F) -> _F:
        for option, more in reversed(_OPTIONS):
            if option[0].partition("/")[0] not in names:
                function = click.option(*option, **more)(function)
        return function

    return add


def said_by_options(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that options give a value to, out of all parameters of the command.

    Raises:
        BadInput: for a variable that is written otherwise, or is not set here.
    """
    said = {name: given[name] for name in _fields() if given.get(name) not in (None, ())}
    if "env" in said:
        said["env"] = environment(said["env"])
    return said


def without_options(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of the command that are no fields of a job."""
    fields = set(_fields())
    return {name: value for name, value in given.items() if name not in fields}


def _fields() -> list[str]:
    last = (names[-1].partition("/")[0] for names, _ in _OPTIONS)
    return [name.lstrip("-").replace("-", "_") for name in last]


def environment(pairs: tuple[str, ...]) -> dict[str, str]:
    """Return the variables of ``--env``; a value that is secret is hidden.

    Raises:
        BadInput: for a variable that is written otherwise, or is not set here.
    """
    import os

    from toolkit.cli.frame.say import say
    from toolkit.launch.request.variables import guarded, of_pairs
    from toolkit.model.hidden import hidden

    found = of_pairs(pairs, os.environ, "--env")
    given = guarded(found)
    if exposed := [name for name in hidden(given) if name not in hidden(found)]:
        names = ", ".join(exposed)
        say(
            f"warning: --env {exposed[0]}=…: the value of {names} is in the argument list of this command, "
            f"which all users of this machine can see; export it and write --env {exposed[0]}",
            err=True,
        )
    return given
