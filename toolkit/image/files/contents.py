"""Compute the hashes of files in an image, without unpacking the files to disk."""

import hashlib
import posixpath
from collections.abc import Iterator

from toolkit.image.files.layers import LayeredTree
from toolkit.image.files.tree import FileTree, Sliced

_PIECE = 4 << 20


def regular(tree: FileTree, root: str) -> Iterator[str]:
    """Yield the paths of all regular files below a folder, without following links."""
    waiting = [root]
    while waiting:
        folder = waiting.pop()
        for name in sorted(tree.names(folder)):
            path = posixpath.join(folder, name)
            match tree.kind(path):
                case "file":
                    yield path
                case "folder":
                    waiting.append(path)
                case _:
                    pass


def hash_content(tree: FileTree, path: str) -> str:
    """Return the SHA-256 of a file's content, or an empty text if the path is not a regular file."""
    if tree.kind(path) != "file":
        return ""
    state = hashlib.sha256()
    if not isinstance(tree, Sliced):
        for piece in tree.pieces(path) if isinstance(tree, LayeredTree) else (tree.content(path),):
            state.update(piece)
        return state.hexdigest()
    offset = 0
    while piece := tree.piece(path, offset, _PIECE):
        state.update(piece)
        offset += len(piece)
        if len(piece) < _PIECE:
            break
    return state.hexdigest()
