"""Remove values of variables that no rule reads, and values that may identify the user (pure)."""

import re
from collections.abc import Mapping

from toolkit import knowledge
from toolkit.knowledge.settings import reads_value

_OTHERS = {"SLURM_MPI_TYPE", "PMIX_VERSION"}
"""Read by rules in addition to ``settings.toml`` and the folders of ``mpi.toml``."""

_PERSONAL = re.compile(
    r"@|~|\s|\$|/(home|users?|u|people|staff)/|token|secret|passw|credential|://", re.ASCII | re.IGNORECASE
)
"""Parts of values that contain accounts, addresses, commands and folders of a user."""

_RANDOM = re.compile(r"(?=[A-Za-z_-]*[0-9])(?=[0-9_-]*[A-Za-z])[A-Za-z0-9_-]{20,}", re.ASCII)
"""A run of letters and digits as in keys; the longest word of a list of components has 16 letters."""

_LONGEST = 200
_MOST = 4000
_LISTS = {"_BIND": ",", "_BINDPATH": ",", "ENV_LD_LIBRARY_PATH": ":"}
"""Variables of the container runtime that name folders of a site's module, and their separator; a folder
that may identify the user becomes ``-``.
"""
_OF_RUNTIME = re.compile(rf"(?:APPTAINER|SINGULARITY)({'|'.join(_LISTS)})")


def public(variables: Mapping[str, str], prefix: str = "") -> dict[str, str]:
    """Return the variables with an empty value for each removed variable, as if the probe reported only the
    name.

    Args:
        prefix: completes a name to the variable's, as ``OMPI_MCA_`` in a file of parameters.
    """
    return {name: _kept_value(f"{prefix}{name}", value) for name, value in variables.items()}


def _kept_value(name: str, value: str) -> str:
    found = _OF_RUNTIME.fullmatch(name)
    if found is None:
        return value if _may_be_kept(name, value) else ""
    sign = _LISTS[found[1]]
    parts = value[:_MOST].split(sign) if value else ()
    return sign.join(part if _is_of_system(part) else "-" for part in parts)


def _is_of_system(part: str) -> bool:
    return part.startswith("/") and not _PERSONAL.search(part) and not _RANDOM.search(part)


def _may_be_kept(name: str, value: str) -> bool:
    known = name in _OTHERS or name in knowledge.mpi().variables.paths or reads_value(name)
    return known and len(value) <= _LONGEST and not _PERSONAL.search(value) and not _RANDOM.search(value)
