"""Make the job script: a text that runs with plain sbatch and is readable by the person who keeps it."""

import re
from collections.abc import Sequence

from toolkit import __version__
from toolkit.data import package
from toolkit.errors import BadInput
from toolkit.launch.plan import gloo_file, launch_words
from toolkit.model.job import JobSpec
from toolkit.model.prediction import Plan
from toolkit.render import quoted_words, render

PREFLIGHT = ("python", "-m", "toolkit.trainers.preflight")
"""What is run in the container first; ``--tasks "$SLURM_NTASKS"`` is added by the script."""

PREFLIGHT_SECONDS = 300
"""After this long a start-up that hangs is ended; wiring up thousands of ranks takes a minute or two."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+@=-]{0,127}")
_TIME = re.compile(r"(\d+-\d{1,2}(:\d{1,2}){0,2}|\d+(:\d{1,2}){0,2})")


def job_script(spec: JobSpec, plan: Plan, because: str, runtime: str = "singularity") -> str:
    """Render ``slurm/job.sh.j2`` for one job.

    Raises:
        BadInput: for values that Slurm could not take or that no script can hold.
    """
    _check(spec)
    return render(
        "slurm",
        "job.sh.j2",
        {
            "version": __version__,
            "spec": spec,
            "mode": plan.mode,
            "because": _comment(because),
            "launch": _lines(launch_words(spec, plan, spec.command, runtime), 4),
            "preflight": _lines(launch_words(spec, plan, PREFLIGHT, runtime), 8),
            "preflight_seconds": PREFLIGHT_SECONDS,
            "preflight_of": "Gloo" if plan.mode == "gloo" else "MPI",
            "wrapper_file": gloo_file(spec, plan),
            "wrapper": (package() / "trainers" / "gloo.py").read_text(encoding="utf-8"),
            "runtime": runtime,
        },
    )


def check_names(**names: str | None) -> None:
    """Refuse what Slurm could read otherwise than as a name; each is given by its option."""
    for option, value in names.items():
        if value is not None and not _NAME.fullmatch(value):
            raise BadInput(
                f"--{option} {value!r}: Slurm's names may hold letters, digits and . _ + @ = - "
                "and start with a letter or digit"
            )


def check_time(time: str) -> None:
    """Refuse a time limit that sbatch would not take."""
    if not _TIME.fullmatch(time):
        raise BadInput(f"--time {time!r}: use MINUTES, HH:MM:SS or DAYS-HH:MM:SS, as sbatch(1) does")


def check_command(command: Sequence[str]) -> None:
    """Refuse a job that has nothing to run."""
    if not command:
        raise BadInput(
            "there is no command to run: name a trainer, or give a command after --",
            fix="toolkit launch mnist, or: toolkit launch --image FILE.sif -- COMMAND",
        )


def as_name(text: str) -> str:
    """Make a name that Slurm takes from the word that a command begins with."""
    return re.sub(r"[^A-Za-z0-9._+@=-]", "-", text).lstrip("._+@=-")[:64] or "job"


def _check(spec: JobSpec) -> None:
    check_names(name=spec.name, partition=spec.partition, account=spec.account)
    check_time(spec.time)
    check_command(spec.command)
    for option, count in (("nodes", spec.nodes), ("ranks-per-node", spec.ranks_per_node)):
        if count < 1:
            raise BadInput(f"--{option} {count}: at least 1")


def _comment(text: str) -> str:
    """Keep a sentence in one comment line, whatever it quotes."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def _lines(groups: Sequence[Sequence[str]], indent: int) -> str:
    """Quote every word and give each group a line, so that a person can read a long command."""
    return (" \\\n" + " " * indent).join(quoted_words(group) for group in groups)
