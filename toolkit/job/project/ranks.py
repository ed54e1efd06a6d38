"""Refuse a program that would run once for each rank without knowing of the others."""

import posixpath

import msgspec

from toolkit.errors import CheckFailed
from toolkit.job.project.code import Code
from toolkit.job.request.flags import Flags
from toolkit.model.job import JobSpec
from toolkit.model.jobfile import JobFile
from toolkit.render import quoted

_NUMBER = "${SLURM_PROCID:-${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-${PALS_RANKID:-0}}}}"
_COPY = f"""export TOOLKIT_COPY="{_NUMBER}" TOOLKIT_START_DIR="$PWD"
export PYTHONPATH="$PWD${{PYTHONPATH:+:$PYTHONPATH}}"
mkdir -p -- "$TOOLKIT_JOB_DIR/copy-$TOOLKIT_COPY" && cd -- "$TOOLKIT_JOB_DIR/copy-$TOOLKIT_COPY" || exit 1
exec "$@"
"""
"""What gives each copy of a program its number and its folder."""


def check_ranks(job: JobFile, code: Code | None, flags: Flags) -> None:
    """Refuse several ranks of a program that joins none.

    Raises:
        CheckFailed: naming the three ways out.
    """
    ranks = (job.nodes or 1) * (job.ranks_per_node or 1)
    if code is None or ranks == 1 or flags.copies or flags.force or not code.facts.serial:
        return
    raise CheckFailed(
        f"{code.name} never joins its ranks: {ranks} copies would train separately",
        detail=[
            "nothing in it starts Horovod, mpi4py, torch.distributed, accelerate, DeepSpeed, Lightning,",
            "jax.distributed or a strategy of TensorFlow for several workers",
        ],
        fix=f"give --nodes 1 --ranks-per-node 1 for one rank, {_how_to_join(code)} to join them, "
        "or --copies for separate runs",
    )


def _how_to_join(code: Code) -> str:
    """Return what changes a script for several ranks: a command, if it can read the script."""
    at = code.facts.script
    trains = {"tensorflow", "keras", "tf_keras", "torch"}
    if (
        at is not None
        and code.words[at].endswith(".py")
        and any(f.packages & trains for f in code.facts.facts)
    ):
        return f"`toolkit adapt {quoted(code.words[at])}`"
    return "docs/howto/own-script.md"


def as_copies(spec: JobSpec, code: Code | None) -> JobSpec:
    """Return a job whose ranks are copies: each has ``TOOLKIT_COPY`` and starts in its own folder."""
    at = code.facts.script if code else None
    words = [
        posixpath.join(spec.workdir, word) if number == at else word
        for number, word in enumerate(spec.command)
    ]
    return msgspec.structs.replace(spec, command=("sh", "-c", _COPY, "copy", *words))
