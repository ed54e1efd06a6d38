"""Read the failed steps of a Slurm job from Slurm's accounting, and find the job's output files on this
machine.
"""

import shutil
from pathlib import Path

from toolkit.errors import Missing
from toolkit.launch.tracking import accounting
from toolkit.run.command import Command
from toolkit.run.local import LocalRunner


def ends_of(number: str) -> list[str]:
    """Return one line of text for each failed step of the job with the Slurm job ID ``number``.

    The list is empty if no step failed, or if this machine cannot read Slurm's accounting.
    """
    answer = _ask_slurm(accounting.steps(number))
    return [end.line for end in accounting.failures(accounting.parse_steps(answer))]


def files_of(number: str) -> list[Path]:
    """Return the output files of a job, if they exist on this machine. ``number`` is the Slurm job ID.

    toolkit reads the file names from ``scontrol show job``. If ``scontrol`` prints no file name, toolkit
    looks for ``slurm-JOB.out`` and ``slurm-JOB.err`` in the job's working directory.
    """
    named = accounting.output_files(_ask_slurm(accounting.show(number)))
    if not named:
        folder = _ask_slurm(accounting.work_folder(number)).strip().splitlines()[:1]
        job = number.partition(".")[0]
        named = [str(Path(where) / f"slurm-{job}.{end}") for where in folder for end in ("out", "err")]
    return [path for name in named if (path := Path(name)).is_file()]


def _ask_slurm(command: Command) -> str:
    """Return the output of a Slurm command, or an empty string if the command is missing or fails."""
    if not shutil.which(command.words[0]):
        return ""
    try:
        done = LocalRunner().run(command)
    except Missing:
        return ""
    return done.text if done.ok else ""
