"""The program with which a launcher inside an image would start ranks elsewhere."""

import posixpath
import re

from toolkit.image import tree as files
from toolkit.image.loader import Loader

_MOST = 1 << 16
_AGENT = re.compile(
    r"^[ \t]*(?:plm_rsh_agent|plm_ssh_agent|prte_plm_ssh_agent)[ \t]*=[ \t]*(\S.*?)[ \t]*$", re.MULTILINE
)
"""Open MPI 4 to 5 and PRRTE name it so; the last line of a file counts (open-mpi/ompi:docs/mca.rst)."""
_DEBIAN = "/etc/openmpi"


def remote_agent(loader: Loader, mpirun: str | None) -> tuple[str | None, str]:
    """Return the program's path, and where it was looked for.

    It is what the settings of the image's Open MPI name, the first of their list that is there; else ssh.
    ``mpirun`` is the real path of the launcher, beside whose folder the settings are.
    """
    prefix = posixpath.dirname(posixpath.dirname(mpirun or "/usr/bin/mpirun"))
    for folder in (posixpath.join(prefix, "etc"), _DEBIAN):
        path = posixpath.join(folder, "openmpi-mca-params.conf")
        if named := _AGENT.findall(files.text(loader.tree, path, _MOST) or ""):
            words = (word.split()[0] for word in named[-1].split(":") if word.split())
            return next(filter(None, map(loader.program, words)), None), f"plm_rsh_agent of {path}"
    return loader.program("ssh"), "ssh on the image's PATH"
