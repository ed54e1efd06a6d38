"""PBS Professional and OpenPBS: the ``qsub`` options at the head of a job script.

toolkit's developers have not run PBS. The options follow qsub(1B) and the job scripts of two centres (ALCF
user guides for Polaris, "Running Jobs"; README of NCAR/mpibind for Derecho).
"""

from toolkit.errors import BadInput
from toolkit.model.job import JobSpec
from toolkit.model.jobfile import FIELDS
from toolkit.model.site import Site
from toolkit.scheduler.times import minutes

NAME = "pbs"
TEMPLATE = "job.pbs.sh.j2"
SUBMIT_DIR = "$PBS_O_WORKDIR"

JOB = "${PBS_JOBID%%[!0-9]*}"
NODES = 'uniq "$PBS_NODEFILE"'
ADDRESS = ""
"""PBS has no command for a node's address.

``NODES`` needs ``uniq``, because ``PBS_NODEFILE`` has a line for each chunk or rank, in the order of the
nodes (qsub(1B), ENVIRONMENT).
"""


def header(spec: JobSpec, site: Site | None = None) -> list[str]:
    """Return the options at the head of the job script, without the word ``#PBS``.

    Raises:
        BadInput: if toolkit has no PBS option for a field that the user set, or the job has no time limit.
    """
    for field in FIELDS:
        if not field.pbs and getattr(spec, field.name):
            raise BadInput(
                f"{field.option_name}: toolkit does not support this option with PBS; leave out the option"
            )
    limit = minutes(spec.time)
    if limit is None:
        raise BadInput(f"--time {spec.time}: PBS needs a time limit", fix="write MINUTES or HH:MM:SS")
    after = spec.dependency and f"depend={spec.dependency}"
    pairs = [
        ("-N", spec.name),
        ("-l", f"select={spec.nodes}:{_chunk(spec, site)}"),
        ("-l", "place=scatter:excl" if spec.exclusive else "place=scatter"),
        ("-l", f"walltime={limit // 60:02}:{limit % 60:02}:00"),
        ("-q", spec.partition),
        ("-A", spec.account),
        ("-W", after),
        ("-o", spec.output),
        *([("-e", spec.error)] if spec.error else [("-j", "oe")]),
        ("-M", spec.mail_user),
    ]
    lines = [f"{name} {value}" for name, value in pairs if value not in (None, "")]
    return [*lines, *dict.fromkeys((*(site.defaults.sbatch if site else ()), *spec.sbatch))]


def _chunk(spec: JobSpec, site: Site | None) -> str:
    """Return the resources that the job requests on each node, as text of a ``select`` statement
    (pbs_resources(7B)).
    """
    gpus = spec.gpus_per_node if site is None or site.gpus.ask == "gres" else None
    cores = spec.cpus_per_rank * spec.ranks_per_node if spec.cpus_per_rank else None
    pairs = [
        ("ncpus", cores and cores * (site.threads(spec.partition) if site else 1)),
        ("mpiprocs", spec.ranks_per_node),
        ("ompthreads", spec.cpus_per_rank),
        ("ngpus", gpus),
        ("mem", f"{spec.memory.lower()}b" if spec.memory else None),
    ]
    words = [f"{name}={value}" for name, value in pairs if value]
    return ":".join((*words, *([spec.constraint] if spec.constraint else [])))
