"""Write the two documents that a build adds to an image together with the lock: the SBOM and the provenance.

``context.own_files`` adds the SBOM and the provenance to the Docker build context, and the Dockerfile
template copies them to /opt/toolkit.
"""

import posixpath

from toolkit.image.builds.provenance import PROVENANCE_PATH, provenance
from toolkit.image.builds.sbom import SBOM_PATH, sbom
from toolkit.model.lock import Lock


def documents(lock: Lock) -> dict[str, bytes]:
    """Return the SBOM and the provenance of a lock, by their file names in /opt/toolkit. With the same
    version of toolkit, equal locks give equal documents.
    """
    return {
        posixpath.basename(SBOM_PATH): sbom(lock),
        posixpath.basename(PROVENANCE_PATH): provenance(lock),
    }
