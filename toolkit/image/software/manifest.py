"""Read ``/opt/toolkit/manifest.json``, which ``containers/manifest.py`` writes at the end of a build."""

import msgspec

from toolkit.decoding import DECODE_ERRORS
from toolkit.errors import CheckFailed
from toolkit.image.files import tree as files
from toolkit.image.files.tree import FileTree

MANIFEST_PATH = "/opt/toolkit/manifest.json"
_MOST = 48 << 20


class FileHashes(msgspec.Struct, frozen=True):
    """The contents of an image's manifest.

    ``files`` maps the path of each file in /opt, and of each program and library of the system, to its
    SHA-256. ``changed`` are paths of Python packages' files that the build changed, such as stripped
    libraries. ``gone`` maps each Python package to the number of its files that the build removed, such as
    tests.
    """

    schema: str
    files: dict[str, str]
    changed: tuple[str, ...] = ()
    gone: dict[str, int] = msgspec.field(default_factory=dict)


def read_manifest(tree: FileTree) -> FileHashes | None:
    """Return the manifest of an image, or None if the image has no manifest.

    Raises:
        CheckFailed: if the manifest is invalid.
    """
    content = files.read(tree, MANIFEST_PATH, _MOST)
    if content is None:
        return None
    try:
        return msgspec.json.decode(content, type=FileHashes)
    except DECODE_ERRORS as error:
        raise CheckFailed(f"{MANIFEST_PATH} in the image cannot be read: {error}") from error
