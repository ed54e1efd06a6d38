"""Find variables of the job's environment that would disturb the MPI in the image.

Modules set variables for the host's MPI, and the user's login files may load modules. The launch plan removes
the variables that the probe of the host found. The job script removes further variables that exist only in
the job's environment.
"""

from dataclasses import dataclass

from toolkit import knowledge
from toolkit.engine.host_variables import needed_patterns
from toolkit.model.job import JobSpec
from toolkit.model.prediction import Mode
from toolkit.model.site import Site

WORD = "\0foreign"
"""A placeholder in the launch command. toolkit replaces the placeholder with the shell text :data:`SHELL`.

The placeholder contains a NUL character, so no word from a user can be equal to the placeholder.
"""

SHELL = '${foreign[@]+"${foreign[@]}"}'
"""The shell text that replaces the placeholder :data:`WORD` in the launch command. In the job, bash expands
the text to options ``-u NAME`` of ``env``.

Under ``set -u``, bash before 4.4 rejects the expansion of an empty array. The form with ``+`` prevents this
error.
"""

_RUNTIMES = ("APPTAINER", "SINGULARITY")


@dataclass(frozen=True, slots=True)
class ForeignVariables:
    """The variables that the job script removes.

    The script removes each variable whose name is in ``names`` or starts with one of ``prefixes``. The script
    also removes the variables of the container runtime in ``options``, which is a brace expansion of bash,
    such as ``APPTAINER_{PID,IPC}``. The script does not remove a variable that matches a pattern in ``kept``.
    """

    prefixes: tuple[str, ...]
    names: tuple[str, ...]
    options: str
    kept: tuple[str, ...]


def foreign(spec: JobSpec, site: Site | None, mode: Mode) -> ForeignVariables | None:
    """Return the variables that the job script removes; ``None`` if the job has no site profile and loads no
    modules.
    """
    if site is None and not spec.modules:
        return None
    known = knowledge.mpi().variables
    names = tuple(n for n in (*known.paths, *known.harmful) if not n.startswith(known.harmful_prefixes))
    patterns = (*needed_patterns(mode), *(site.keep if site else ()))
    options = f"{{{','.join(_RUNTIMES)}}}_{{{','.join(known.container_options)}}}"
    return ForeignVariables(known.harmful_prefixes, names, options, patterns)
