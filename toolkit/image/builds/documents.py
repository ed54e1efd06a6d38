"""The documents that a build puts into an image beside its lock: bill of materials and provenance.

``context.own_files`` adds them to what the engine builds from, and the template copies them to /opt/toolkit.
"""

import posixpath

from toolkit.image.builds.provenance import PROVENANCE_PATH, provenance
from toolkit.image.builds.sbom import SBOM_PATH, sbom
from toolkit.model.lock import Lock


def documents(lock: Lock) -> dict[str, bytes]:
    """Return name → content of what goes into /opt/toolkit; the same for equal locks."""
    return {
        posixpath.basename(SBOM_PATH): sbom(lock),
        posixpath.basename(PROVENANCE_PATH): provenance(lock),
    }
