"""Leave out values of variables that no rule reads, and those that may tell who the user is; pure."""

import re
from collections.abc import Mapping

from toolkit import knowledge
from toolkit.knowledge.settings import reads_value

_OTHERS = {"SLURM_MPI_TYPE", "PMIX_VERSION"}
"""Read by rules beside ``settings.toml`` and the folders of ``mpi.toml``."""

_PERSONAL = re.compile(
    r"@|~|\s|\$|/(home|users?|u|people|staff)/|token|secret|passw|credential|://", re.ASCII | re.IGNORECASE
)
"""What stands in values with accounts, addresses, commands and folders of a person."""

_RANDOM = re.compile(r"(?=[A-Za-z_-]*[0-9])(?=[0-9_-]*[A-Za-z])[A-Za-z0-9_-]{20,}", re.ASCII)
"""A run of letters and digits as keys have it; the longest word of a list of components has 16 letters."""

_LONGEST = 200


def public(variables: Mapping[str, str], prefix: str = "") -> dict[str, str]:
    """Return the variables with an empty value in place of one that is left out, as where a name came alone.

    Args:
        prefix: what a name lacks of that of a variable, as ``OMPI_MCA_`` in a file of parameters.
    """
    return {
        name: value if _may_be_kept(f"{prefix}{name}", value) else "" for name, value in variables.items()
    }


def _may_be_kept(name: str, value: str) -> bool:
    known = name in _OTHERS or name in knowledge.mpi().variables.paths or reads_value(name)
    return known and len(value) <= _LONGEST and not _PERSONAL.search(value) and not _RANDOM.search(value)
