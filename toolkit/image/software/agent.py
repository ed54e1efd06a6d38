"""Find the program with which the image's ``mpirun`` starts its daemons on other nodes (usually ssh)."""

import posixpath
import re

from toolkit.image.files import tree as files
from toolkit.image.loader.loader import Loader

_MOST = 1 << 16
_LARGEST = 8 << 20
_AGENT = re.compile(
    r"^[ \t]*(?:plm_rsh_agent|plm_ssh_agent|prte_plm_ssh_agent)[ \t]*=[ \t]*(\S.*?)[ \t]*$", re.MULTILINE
)
"""A pattern for a line that sets the program with which mpirun starts daemons. The parameter has different
names in Open MPI 4, Open MPI 5 and PRRTE. If several lines of a file set the parameter, the last line applies
(open-mpi/ompi:docs/mca.rst).
"""
_DEBIAN = "/etc/openmpi"
_ORTE = (b"libopen-rte", b"orterun")
"""Texts that identify ORTE, the launcher of Open MPI 4 or older. toolkit reads ``OMPI_MCA_plm`` only for
ORTE, because PRRTE, the launcher of Open MPI 5, has no component ``isolated``.
"""


def remote_agent(loader: Loader, mpirun: str | None) -> tuple[str | None, str]:
    """Return the path of the program with which mpirun starts daemons, and the variable or file that names
    it.

    A variable of the image, or the settings file of the image's Open MPI, may list such programs. If a
    variable or the file lists several programs, mpirun uses the first program that exists in the image. If
    neither names a program, mpirun uses ssh. The returned path is empty if a variable restricts mpirun to one
    node. ``mpirun`` is the real path of the launcher, which determines the folder of the settings file.
    """
    if mpirun is None or _of_orte(loader, mpirun):
        if loader.environment.get("OMPI_MCA_plm") == "isolated":
            return "", "OMPI_MCA_plm is isolated"
        if (setting := loader.environment.get("OMPI_MCA_plm_rsh_agent")) is not None:
            return _first(loader, setting) if setting.strip() else "", "OMPI_MCA_plm_rsh_agent of the image"
    prefix = posixpath.dirname(posixpath.dirname(mpirun or "/usr/bin/mpirun"))
    for folder in (posixpath.join(prefix, "etc"), _DEBIAN):
        path = posixpath.join(folder, "openmpi-mca-params.conf")
        if named := _AGENT.findall(files.text(loader.tree, path, _MOST) or ""):
            return _first(loader, named[-1]), f"plm_rsh_agent of {path}"
    return loader.program("ssh"), "ssh on the image's PATH"


def _of_orte(loader: Loader, mpirun: str) -> bool:
    # Read the whole file, because the texts in _ORTE may be anywhere in a launcher.
    content = files.read(loader.tree, mpirun, _LARGEST) or b""
    return any(text in content for text in _ORTE)


def _first(loader: Loader, listed: str) -> str | None:
    """Return the first program of a list such as ``ssh -q : rsh`` that exists in the image."""
    words = (word.split()[0] for word in listed.split(":") if word.split())
    return next(filter(None, map(loader.program, words)), None)
