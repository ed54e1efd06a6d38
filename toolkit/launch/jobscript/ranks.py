"""Write the shell file that sets each rank's number and the addresses of the other ranks."""

from toolkit.engine.planning.proposal import RANKS_FILE
from toolkit.launcher import launcher_of as launcher_of
from toolkit.model.job import JobSpec
from toolkit.model.prediction import Plan
from toolkit.program import program_of_name
from toolkit.scheduler import Scheduler


def values(spec: JobSpec, plan: Plan, scheduler: Scheduler | None) -> dict[str, object]:
    """Return the template values of ``parts/ranks.sh.j2``.

    If the launch needs no file with rank numbers, ``ranks_file`` is ``None``, and the template writes no
    file. Without a ``scheduler``, all ranks run on this machine.
    """
    if RANKS_FILE not in plan.wrapper:
        return {"ranks_file": None}
    own = launcher_of(plan).RANK
    place = (f'rank="{own.rank}"', f'local_rank="{own.local_rank}"', f'node_rank="{own.node_rank}"')
    return {
        "ranks_file": RANKS_FILE,
        "ranks_lines": "\n".join((*place, *own.lines, *program_of_name(plan.program).peers(plan.starter))),
        "ranks_per_node": spec.ranks_per_node,
        "ranks_elastic": spec.elastic,
        "ranks_ports": spec.ranks_per_node if plan.program == "tf-config" else 1,
        "ranks_hostfile": plan.starter == "deepspeed",
        "ranks_nodes": scheduler.NODES if scheduler else "printf localhost",
        "ranks_address": scheduler.ADDRESS if scheduler else "",
        "ranks_job": scheduler.JOB if scheduler else "$$",
    }
