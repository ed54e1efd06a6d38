"""The variables of the job's environment that would disturb the MPI in the image.

Modules set variables for the MPI of the host, and the user's login files may load modules. The plan removes
the variables that the probe saw. The job script removes the remaining variables, which are known only in the
job.
"""

from dataclasses import dataclass

from toolkit import knowledge
from toolkit.engine.host_variables import needed_patterns
from toolkit.model.job import JobSpec
from toolkit.model.prediction import Mode
from toolkit.model.site import Site

WORD = "\0foreign"
"""The mark in the launch line for the ``env`` options that the script collects; a user's word has no NUL."""

SHELL = '${foreign[@]+"${foreign[@]}"}'
"""The same in shell. The plus is for bash before 4.4, in which an empty array is an unset variable."""

_RUNTIMES = ("APPTAINER", "SINGULARITY")


@dataclass(frozen=True, slots=True)
class Foreign:
    """Variables that the script removes: those with ``prefixes`` or ``names``, except the patterns ``kept``.

    ``options`` are the variables that set options of the container runtime, in bash's brace notation.
    """

    prefixes: tuple[str, ...]
    names: tuple[str, ...]
    options: str
    kept: tuple[str, ...]


def foreign(spec: JobSpec, site: Site | None, mode: Mode) -> Foreign | None:
    """Return the variables that the script removes; ``None`` without modules if the cluster was probed."""
    if site is None and not spec.modules:
        return None
    known = knowledge.mpi().variables
    names = tuple(n for n in (*known.paths, *known.harmful) if not n.startswith(known.harmful_prefixes))
    kept = (*needed_patterns(mode), *(site.keep if site else ()))
    options = f"{{{','.join(_RUNTIMES)}}}_{{{','.join(known.container_options)}}}"
    return Foreign(known.harmful_prefixes, names, options, kept)
