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
"""A pattern for a line in which a parameter names the program that starts mpirun's daemons on other nodes.
The name of this parameter depends on the version of Open MPI or PRRTE. If several lines of a file set the
parameter, the last line applies (open-mpi/ompi:docs/mca.rst).
"""
_DEBIAN = "/etc/openmpi"
_ORTE = (b"libopen-rte", b"orterun")
"""Texts that identify ORTE, the launcher of Open MPI 4 or older.

If the launcher is PRRTE (Open MPI 5), toolkit ignores ``OMPI_MCA_plm`` and ``OMPI_MCA_plm_rsh_agent``. PRRTE
does not support ``OMPI_MCA_plm=isolated``, which restricts ORTE to one node.
"""


def remote_agent(loader: Loader, mpirun: str | None) -> tuple[str | None, str]:
    """Return the path of the program with which mpirun starts daemons on other nodes. The second value is the
    reason that toolkit reports if the path is None or empty.

    A variable of the image, or the settings file of the image's Open MPI, may name one or more programs.
    mpirun then uses the first of these programs that exists in the image. If neither the variable nor the
    file names a program, mpirun uses ssh.

    The path is None if the image contains none of the programs. The path is empty if a variable restricts
    mpirun to one node. ``mpirun`` is the real path of the launcher; toolkit derives the path of the settings
    file from ``mpirun``.
    """
    if mpirun is None or _of_orte(loader, mpirun):
        if loader.environment.get("OMPI_MCA_plm") == "isolated":
            return "", "OMPI_MCA_plm=isolated restricts mpirun to its own node"
        if (setting := loader.environment.get("OMPI_MCA_plm_rsh_agent")) is not None:
            if not setting.strip():
                return "", "OMPI_MCA_plm_rsh_agent is empty, so mpirun cannot start daemons on other nodes"
            return _first(loader, setting), "the program in OMPI_MCA_plm_rsh_agent: not in the image"
    prefix = posixpath.dirname(posixpath.dirname(mpirun or "/usr/bin/mpirun"))
    for folder in (posixpath.join(prefix, "etc"), _DEBIAN):
        path = posixpath.join(folder, "openmpi-mca-params.conf")
        if named := _AGENT.findall(files.text(loader.tree, path, _MOST) or ""):
            why = f"the programs that {path} names instead of ssh: not in the image"
            return _first(loader, named[-1]), why
    return loader.program("ssh"), "no folder of the image's PATH contains ssh"


def _of_orte(loader: Loader, mpirun: str) -> bool:
    # Read the whole file, because the texts in _ORTE may be anywhere in a launcher.
    content = files.read(loader.tree, mpirun, _LARGEST) or b""
    return any(text in content for text in _ORTE)


def _first(loader: Loader, programs: str) -> str | None:
    """Return the first program of a list such as ``ssh -q : rsh`` that exists in the image."""
    words = (word.split()[0] for word in programs.split(":") if word.split())
    return next(filter(None, map(loader.program, words)), None)
