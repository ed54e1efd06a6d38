"""A Python file that defines no trainer: what runs is ``python FILE``, with the user's words alone."""

import msgspec

from toolkit.errors import BadInput
from toolkit.folders import at_home, has_file
from toolkit.launch.request.checks import as_name
from toolkit.launch.request.layers import Merged
from toolkit.program.script.read import read_script

OF_SCRIPT = "name of the script"
"""The source of a job's name that is the name of its script."""

_OF_TRAINERS = ("strategy",)


def without_trainer(merged: Merged) -> Merged:
    """Return the job with a command in place of a file that defines no trainer.

    Raises:
        BadInput: for an option that only a trainer has.
    """
    job = merged.job
    path = at_home(job.trainer or "")
    if job.trainer is None or not job.trainer.endswith(".py") or not has_file(path):
        return merged
    if read_script(path).trainer:
        return merged
    for option in _OF_TRAINERS:
        if getattr(job, option) is not None:
            raise BadInput(
                f"{merged.origins[option]}: only a trainer has it, and {job.trainer} defines none",
                fix=f"give it to the script: toolkit launch {job.trainer} -- --{option} …",
            )
    command = ("python", str(path), *(job.arguments or ()))
    name = job.name or as_name(path.stem)
    origins = {n: where for n, where in merged.origins.items() if n not in {"trainer", "arguments"}}
    origins |= {
        "command": merged.origins["trainer"],
        "name": merged.origins.get("name", OF_SCRIPT),
    }
    made = msgspec.structs.replace(job, trainer=None, arguments=None, command=command, name=name)
    return Merged(made, origins, merged.note)
