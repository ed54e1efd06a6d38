"""The documents that a build adds to an image beside its lock: bill of materials and provenance.

``context.own_files`` adds them to the engine's build context, and the template copies them to /opt/toolkit.
"""

import posixpath

from toolkit.image.builds.provenance import PROVENANCE_PATH, provenance
from toolkit.image.builds.sbom import SBOM_PATH, sbom
from toolkit.model.lock import Lock


def documents(lock: Lock) -> dict[str, bytes]:
    """Return name → content of the documents in /opt/toolkit; equal for equal locks."""
    return {
        posixpath.basename(SBOM_PATH): sbom(lock),
        posixpath.basename(PROVENANCE_PATH): provenance(lock),
    }
