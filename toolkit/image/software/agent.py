"""The program with which a launcher inside an image would start ranks on other nodes."""

import posixpath
import re

from toolkit.image.files import tree as files
from toolkit.image.loader.loader import Loader

_MOST = 1 << 16
_LARGEST = 8 << 20
_AGENT = re.compile(
    r"^[ \t]*(?:plm_rsh_agent|plm_ssh_agent|prte_plm_ssh_agent)[ \t]*=[ \t]*(\S.*?)[ \t]*$", re.MULTILINE
)
"""Open MPI 4 to 5 and PRRTE use this name; the last line of a file counts (open-mpi/ompi:docs/mca.rst)."""
_DEBIAN = "/etc/openmpi"
_ORTE = (b"libopen-rte", b"orterun")
"""Libraries and programs of a launcher of Open MPI 4 and older; PRRTE has no component ``isolated``."""


def remote_agent(loader: Loader, mpirun: str | None) -> tuple[str | None, str]:
    """Return the program's path, and where it was found or searched.

    The agent is the first existing program in a variable of the image or in the settings of its Open MPI;
    otherwise ssh. The path is empty if a variable forbids other nodes. ``mpirun`` is the real path of the
    launcher, beside whose folder the settings are.
    """
    if mpirun is None or _of_orte(loader, mpirun):
        if loader.environment.get("OMPI_MCA_plm") == "isolated":
            return "", "OMPI_MCA_plm is isolated"
        if (said := loader.environment.get("OMPI_MCA_plm_rsh_agent")) is not None:
            return _first(loader, said) if said.strip() else "", "OMPI_MCA_plm_rsh_agent of the image"
    prefix = posixpath.dirname(posixpath.dirname(mpirun or "/usr/bin/mpirun"))
    for folder in (posixpath.join(prefix, "etc"), _DEBIAN):
        path = posixpath.join(folder, "openmpi-mca-params.conf")
        if named := _AGENT.findall(files.text(loader.tree, path, _MOST) or ""):
            return _first(loader, named[-1]), f"plm_rsh_agent of {path}"
    return loader.program("ssh"), "ssh on the image's PATH"


def _of_orte(loader: Loader, mpirun: str) -> bool:
    # The whole file: a small program may have the name of the program that it starts in its code.
    content = files.read(loader.tree, mpirun, _LARGEST) or b""
    return any(text in content for text in _ORTE)


def _first(loader: Loader, listed: str) -> str | None:
    """Return the first program of a list (``ssh -q : rsh``) that exists."""
    words = (word.split()[0] for word in listed.split(":") if word.split())
    return next(filter(None, map(loader.program, words)), None)
