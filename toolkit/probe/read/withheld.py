"""Remove values that may identify the user, and values that no rule of toolkit reads (pure functions)."""

import re
from collections.abc import Mapping

from toolkit import knowledge
from toolkit.knowledge.settings import reads_value

_OTHERS = {"SLURM_MPI_TYPE", "PMIX_VERSION"}
"""Variables that rules read, and that neither ``settings.toml`` nor ``mpi.toml`` lists."""

_PERSONAL = re.compile(
    r"@|~|\s|\$|/(home|users?|u|people|staff)/|token|secret|passw|credential|://", re.ASCII | re.IGNORECASE
)
"""A pattern for values that may contain accounts, addresses, commands or home folders."""

_RANDOM = re.compile(r"(?=[A-Za-z_-]*[0-9])(?=[0-9_-]*[A-Za-z])[A-Za-z0-9_-]{20,}", re.ASCII)
"""A pattern for a long sequence of letters and digits, such as a key. The pattern does not match the words in
lists of MCA components, which have at most 16 letters.
"""

_LONGEST = 200
_MOST = 4000
_LISTS = {"_BIND": ",", "_BINDPATH": ",", "ENV_LD_LIBRARY_PATH": ":"}
"""The separators of the lists of folders in Apptainer's variables. The keys are the names of these variables,
without the prefix ``APPTAINER`` or ``SINGULARITY``. A site's modules set these variables.

In these lists, toolkit writes ``-`` instead of a folder whose name may identify the user.
"""
_OF_RUNTIME = re.compile(rf"(?:APPTAINER|SINGULARITY)({'|'.join(_LISTS)})")


def public(variables: Mapping[str, str], prefix: str = "") -> dict[str, str]:
    """Return the variables, with an empty text instead of each value that may identify the user or that no
    rule reads.

    Args:
        prefix: the text that ``variables`` omits at the start of each name. For example, an MCA parameter
            file contains ``btl`` instead of ``OMPI_MCA_btl``.
    """
    return {name: _kept_value(f"{prefix}{name}", value) for name, value in variables.items()}


def _kept_value(name: str, value: str) -> str:
    match = _OF_RUNTIME.fullmatch(name)
    if match is None:
        return value if _may_be_kept(name, value) else ""
    sign = _LISTS[match[1]]
    parts = value[:_MOST].split(sign) if value else ()
    return sign.join(part if _is_of_system(part) else "-" for part in parts)


def _is_of_system(path: str) -> bool:
    return path.startswith("/") and not _PERSONAL.search(path) and not _RANDOM.search(path)


def _may_be_kept(name: str, value: str) -> bool:
    known = name in _OTHERS or name in knowledge.mpi().variables.paths or reads_value(name)
    return known and len(value) <= _LONGEST and not _PERSONAL.search(value) and not _RANDOM.search(value)
