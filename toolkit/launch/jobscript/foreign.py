"""What of a job's own environment must not reach the MPI in an image, where it is known only in the job.

Modules set variables for the MPI of the host, and a person's login may have loaded some. What the probe saw
is dropped by the plan; the script finds the rest.
"""

from dataclasses import dataclass

from toolkit import knowledge
from toolkit.engine.inherited import needed_inside
from toolkit.model.job import JobSpec
from toolkit.model.prediction import Mode
from toolkit.model.site import Site

WORD = "\0foreign"
"""Stands in the launch line for the options of ``env`` that the script collects; no person's has a NUL."""

SHELL = '${foreign[@]+"${foreign[@]}"}'
"""The same in shell. Before bash 4.4 an empty array is an unset variable, hence the plus."""

_RUNTIMES = ("APPTAINER", "SINGULARITY")


@dataclass(frozen=True, slots=True)
class Foreign:
    """``prefixes`` and ``names`` are variables to be dropped, ``kept`` patterns of those that are not.

    ``options`` are those that the container runtime takes for its own, as bash's braces write them.
    """

    prefixes: tuple[str, ...]
    names: tuple[str, ...]
    options: str
    kept: tuple[str, ...]


def foreign(spec: JobSpec, site: Site | None, mode: Mode) -> Foreign | None:
    """Return what the script has to look for; nothing where it loads no modules and the site was asked."""
    if site is None and not spec.modules:
        return None
    known = knowledge.mpi().variables
    names = tuple(n for n in (*known.paths, *known.harmful) if not n.startswith(known.harmful_prefixes))
    kept = (*needed_inside(mode), *(site.keep if site else ()))
    options = f"{{{','.join(_RUNTIMES)}}}_{{{','.join(known.container_options)}}}"
    return Foreign(known.harmful_prefixes, names, options, kept)
