"""Detect programs whose ranks would train separately, because the program never connects the ranks."""

from toolkit.errors import CheckFailed
from toolkit.job.project.code import Code
from toolkit.job.request.flags import Flags
from toolkit.model.finding import LaunchFault
from toolkit.model.jobfile import JobFile
from toolkit.render import quote_word


def check_ranks(job: JobFile, code: Code | None, flags: Flags) -> None:
    """Raise an error if a job has several ranks and its program never connects these ranks.

    Raises:
        CheckFailed: if the program never connects the ranks. The fix names three alternatives: one rank, a
            change of the program, or ``--copies``.
    """
    if code is None or flags.copies or flags.force or not (fault := rank_fault(job, code)):
        return
    raise CheckFailed(
        fault.message,
        detail=[
            "the script does not use Horovod, mpi4py, torch.distributed, accelerate, DeepSpeed, Lightning,",
            "jax.distributed or a strategy of TensorFlow for several workers",
        ],
        fix=fault.fix,
    )


def rank_fault(job: JobFile, code: Code) -> LaunchFault | None:
    """Return a fault if a job has several ranks that its program never connects. Else return ``None``."""
    ranks = (job.nodes or 1) * (job.ranks_per_node or 1)
    if ranks == 1 or not code.facts.serial:
        return None
    return LaunchFault(
        f"{code.name} never joins its ranks: {ranks} copies would train separately",
        f"use `--nodes 1 --ranks-per-node 1` for one rank, {_how_to_join(code)} to join the ranks, or "
        "`--copies` for separate runs",
    )


def _how_to_join(code: Code) -> str:
    """Return what the fix suggests to connect the ranks: a command, or a page of the documentation."""
    at = code.facts.script
    imports = [imported.module for facts in code.facts.facts for imported in facts.imports]
    if any(module.startswith("mpi4py.futures") for module in imports):
        return "`python -m mpi4py.futures` before the script"
    trains = {"tensorflow", "keras", "tf_keras", "torch"}
    if (
        at is not None
        and code.words[at].endswith(".py")
        and any(f.packages & trains for f in code.facts.facts)
    ):
        return f"`toolkit adapt {quote_word(code.words[at])}`"
    return "docs/howto/own-script.md"
