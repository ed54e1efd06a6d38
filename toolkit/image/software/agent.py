"""The program with which a launcher inside an image would start ranks elsewhere."""

import posixpath
import re

from toolkit.image.files import tree as files
from toolkit.image.loader.loader import Loader

_MOST = 1 << 16
_LARGEST = 8 << 20
_AGENT = re.compile(
    r"^[ \t]*(?:plm_rsh_agent|plm_ssh_agent|prte_plm_ssh_agent)[ \t]*=[ \t]*(\S.*?)[ \t]*$", re.MULTILINE
)
"""Open MPI 4 to 5 and PRRTE name it so; the last line of a file counts (open-mpi/ompi:docs/mca.rst)."""
_DEBIAN = "/etc/openmpi"
_ORTE = (b"libopen-rte", b"orterun")
"""What a launcher of Open MPI 4 and older is linked with or starts; PRRTE has no component ``isolated``."""


def remote_agent(loader: Loader, mpirun: str | None) -> tuple[str | None, str]:
    """Return the program's path, and where it was looked for.

    It is what a variable of the image or the settings of its Open MPI name, the first of their list that is
    there; else ssh. It is empty text where a variable says that no other node is to be reached. ``mpirun`` is
    the real path of the launcher, beside whose folder the settings are.
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
    # All of the file: a small program that starts another may have its name in its code.
    content = files.read(loader.tree, mpirun, _LARGEST) or b""
    return any(text in content for text in _ORTE)


def _first(loader: Loader, listed: str) -> str | None:
    """Return the first program of a list (``ssh -q : rsh``) that is there."""
    words = (word.split()[0] for word in listed.split(":") if word.split())
    return next(filter(None, map(loader.program, words)), None)
