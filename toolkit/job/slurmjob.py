"""A job of Slurm on this machine: what the accounting says about its end, and its files of output."""

import shutil
from pathlib import Path

from toolkit.errors import Missing
from toolkit.launch.tracking import accounting
from toolkit.run.command import Command
from toolkit.run.local import LocalRunner


def ends_of(number: str) -> list[str]:
    """Return lines about the failed steps of a job; none without accounting on this machine."""
    answer = _ask_slurm(accounting.steps(number))
    return [end.line for end in accounting.failures(accounting.parse_steps(answer))]


def files_of(number: str) -> list[Path]:
    """Return the output files of a job that exist here, from Slurm's answer or by their usual name."""
    named = accounting.output_files(_ask_slurm(accounting.show(number)))
    if not named:
        folder = _ask_slurm(accounting.work_folder(number)).strip().splitlines()[:1]
        job = number.partition(".")[0]
        named = [str(Path(where) / f"slurm-{job}.{end}") for where in folder for end in ("out", "err")]
    return [path for name in named if (path := Path(name)).is_file()]


def _ask_slurm(command: Command) -> str:
    """Return what Slurm answers; empty text if it is not installed here, or does not answer."""
    if not shutil.which(command.words[0]):
        return ""
    try:
        done = LocalRunner().run(command)
    except Missing:
        return ""
    return done.text if done.ok else ""
