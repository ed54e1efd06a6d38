"""Check that a program uses the values of a sweep, and show the sweep's tasks before submission."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from toolkit.errors import CheckFailed
from toolkit.job.project.code import Code
from toolkit.job.request.flags import Flags
from toolkit.launch.request import sweep_values
from toolkit.model.jobfile import JobFile
from toolkit.model.progress import Tell

_LONGEST = 1 << 20
_MOST_SHOWN = 12


def check_sweep(job: JobFile, code: Code | None, flags: Flags) -> None:
    """Raise an error if the sweep contains a name whose value the program does not use.

    A program gets a value through a placeholder in its command, or through an environment variable
    ``TOOLKIT_SWEEP_NAME``.

    Raises:
        CheckFailed: if the program does not use a value. The error gives the name and its placeholder. If
            the job has no trainer, the error also gives the environment variable.
    """
    if not job.sweep or flags.force:
        return
    words = (job.arguments or ()) if job.trainer else (job.command or ())
    texts = [*_texts(code)]
    if code is not None and not (code.facts.facts or code.facts.script is not None):
        # The program's source is not on this machine, so toolkit cannot see which values the program uses.
        return
    names = sweep_values.names_of(job.sweep)
    unused = [
        name
        for name in names
        if sweep_values.fill_command(words, dict.fromkeys(names, "") | {name: "x"})
        == sweep_values.fill_command(words, dict.fromkeys(names, ""))
        and not any("TOOLKIT_SWEEP" in text for text in texts)
    ]
    if unused:
        program = job.trainer or (code.name if code else "the program")
        options = " ".join(f"--{name} {sweep_values.placeholder(name)}" for name in unused)
        hint = "" if job.trainer else f"; or read {sweep_values.variable(unused[0])} in the program"
        raise CheckFailed(
            f"--sweep {unused[0]}: {program} does not use the value, so the value would not change any task",
            fix=f"put {sweep_values.placeholder(unused[0])} into the command, such as `-- {options}`{hint}",
        )


def _texts(code: Code | None) -> Iterator[str]:
    """Yield each word of a command, and the text of each file that the command or its program uses."""
    if code is None:
        return
    yield from code.words
    files = {file for facts in code.facts.facts for file in facts.files}
    files |= {Path.cwd() / word for word in code.words if "/" in word or "." in word}
    for file in files:
        with contextlib.suppress(OSError, ValueError):
            if file.is_file() and file.stat().st_size <= _LONGEST:
                yield file.read_text("utf-8", "replace")


def tell_sweep(job: JobFile, code: Code | None, tell: Tell, *, project_copied: bool) -> None:
    """Print the values of the first tasks of a sweep, and warn if tasks could overwrite each other's files.

    ``project_copied`` is true if toolkit copies the project. In this case, each task starts in its own copy,
    so toolkit prints no warning.
    """
    if not job.sweep:
        return
    rows = sweep_values.rows(job.sweep)
    tell.step(f"Sweep of {len(rows)} tasks")
    for number, row in enumerate(rows[:_MOST_SHOWN]):
        tell.step(f"  {number:>3}  {sweep_values.describe_values(row)}")
    if len(rows) > _MOST_SHOWN:
        tell.step(
            f"  … {len(rows) - _MOST_SHOWN} more; the last task: {sweep_values.describe_values(rows[-1])}"
        )
    if (
        code is not None
        and not project_copied
        and not any("TOOLKIT_JOB_DIR" in text for text in _texts(code))
    ):
        tell.notice(
            "all tasks start in the same folder: write output files to $TOOLKIT_JOB_DIR, or put a "
            "placeholder into their names"
        )
