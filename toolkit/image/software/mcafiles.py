"""Read the MCA parameter files of Open MPI, PMIx and PRRTE (Open MPI 5's launcher) in an image."""

import posixpath
import re

from toolkit.image.files import tree as files
from toolkit.image.loader.loader import Loader
from toolkit.model.mpifacts import ImageMpi

_MOST = 1 << 16
_LINE = re.compile(r"^[ \t]*([A-Za-z]\w{1,80})[ \t]*=[ \t]*(.*?)[ \t]*$", re.MULTILINE)
_NAMED = (
    ("openmpi-mca-params.conf", "OMPI_MCA_"),
    ("pmix-mca-params.conf", "PMIX_MCA_"),
    ("prte-mca-params.conf", "PRTE_MCA_"),
)
"""The name of each parameter file, and the prefix of the environment variables that can set the same
parameters (open-mpi/ompi:docs/mca.rst)."""
_OF_DEBIAN = ("/etc/openmpi", "/etc")


def mca_files(loader: Loader, mpi: ImageMpi | None) -> dict[str, str]:
    """Return the MCA parameters (settings of Open MPI, PMIx and PRRTE) in an image's parameter files.

    The keys of the result are the environment variables for the parameters, such as ``OMPI_MCA_btl``. The
    result is empty if ``mpi`` is not an Open MPI. An Open MPI with the prefix /usr reads Debian's files in
    /etc. Any other Open MPI reads the folder ``etc`` in its prefix.
    """
    if mpi is None or mpi.implementation != "openmpi" or mpi.prefix is None:
        return {}
    folders = _OF_DEBIAN if mpi.prefix == "/usr" else (posixpath.join(mpi.prefix, "etc"),)
    settings: dict[str, str] = {}
    for name, prefix in _NAMED:
        for folder in folders:
            text = files.text(loader.tree, posixpath.join(folder, name), _MOST)
            if text is not None:
                settings |= {f"{prefix}{setting}": value for setting, value in _LINE.findall(text)}
                break
    return settings
