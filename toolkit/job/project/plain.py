"""Launch a Python file that defines no trainer as ``python FILE``, followed by the user's arguments."""

from pathlib import Path

import msgspec

from toolkit.errors import BadInput
from toolkit.folders import at_home, has_file, has_folder
from toolkit.launch.request.checks import as_name
from toolkit.launch.request.layers import MergedJob
from toolkit.launch.request.trainers import shipped_trainers
from toolkit.program.script.read import read_script
from toolkit.render import quote_word

OF_SCRIPT = "the script"
"""The source that toolkit records for a job's command or name if the script determines this value."""

NOTEBOOK = "run `jupyter nbconvert --to script {}` and launch the .py file, or use `toolkit notebook`"
"""The fix in the error message for a user who launches a notebook file instead of a program."""
_INTERPRETERS = {".jl": "julia", ".R": "Rscript", ".r": "Rscript", ".pl": "perl", ".lua": "lua"}
_COMPILED = {".c": "mpicc", ".cpp": "mpicxx", ".cc": "mpicxx", ".f90": "mpifort", ".f": "mpifort"}
_OF_TRAINERS = ("strategy",)


def without_trainer(merged_job: MergedJob) -> MergedJob:
    """If the file that the user gave as trainer does not define a trainer, return the job with the command
    ``python FILE``. Return any other job unchanged.

    Raises:
        BadInput: if the user gave an option that applies only to trainers.
    """
    job = merged_job.job
    path = at_home(job.trainer or "")
    if job.trainer is None or job.trainer in shipped_trainers():
        return merged_job
    if not job.trainer.endswith(".py") or not has_file(path):
        _check_not_python(job.trainer, path)
        return merged_job
    if read_script(path).trainer:
        return merged_job
    for option in _OF_TRAINERS:
        if getattr(job, option) is not None:
            raise BadInput(
                f"{merged_job.origins[option]}: this option is for trainers, but {job.trainer} does not "
                "define a trainer",
                fix=f"pass the option to the script: `toolkit launch {job.trainer} -- --{option} …`",
            )
    command = ("python", str(path), *(job.arguments or ()))
    name = job.name or as_name(path.stem)
    origins = {n: where for n, where in merged_job.origins.items() if n not in {"trainer", "arguments"}}
    origins |= {
        "command": OF_SCRIPT,
        "name": merged_job.origins.get("name", OF_SCRIPT),
    }
    plain_job = msgspec.structs.replace(job, trainer=None, arguments=None, command=command, name=name)
    return MergedJob(plain_job, origins, merged_job.note)


def _check_not_python(word: str, path: Path) -> None:
    """Raise an error if a path exists but is not a Python file; the fix says what to run instead.

    Raises:
        BadInput: if the path is a folder, or a file that is not a Python file.
    """
    if has_folder(path):
        package = any((path / name).is_file() for name in ("__main__.py", "__init__.py"))
        command = (
            f"launch the package: `toolkit launch -- python -m {path.name}`"
            if package
            else f"name a file in the folder: `toolkit launch {word}/FILE.py`"
        )
        raise BadInput(f"{word}: this is a folder, not a program", fix=command)
    if not has_file(path):
        return
    if path.suffix == ".ipynb":
        raise BadInput(
            f"{word}: this is a notebook, not a program",
            fix=NOTEBOOK.format(quote_word(word)),
        )
    if (compiler := _COMPILED.get(path.suffix)) is not None:
        raise BadInput(
            f"{word}: this is source code, not a program",
            fix=f"compile the file first: `toolkit launch -- {compiler} {quote_word(word)}`",
        )
    if (program := _INTERPRETERS.get(path.suffix)) is not None:
        raise BadInput(
            f"{word}: not a Python file; `toolkit launch FILE` starts only Python files",
            fix=f"launch the file as a command: `toolkit launch -- {program} {quote_word(word)}`",
        )
    shell = path.suffix in {".sh", ".bash"}
    words = f"bash {quote_word(word)}" if shell else quote_word(f"./{word}" if "/" not in word else word)
    raise BadInput(
        f"{word}: neither a Python file nor a trainer nor a job file",
        fix=f"launch the file as a command: `toolkit launch -- {words}`",
    )
