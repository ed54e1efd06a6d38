"""Replace shell expressions such as ``$(dirname "$0")`` with the path of the script's own folder."""

import posixpath
import re

from toolkit.image.files import tree as files
from toolkit.image.files.tree import FileTree

_SELF = r"\"?\$(?:0|\{(?:0|BASH_SOURCE(?:\[0\])?)\}|BASH_SOURCE)\"?"
_FILE = rf"(?:{_SELF}|\"?\$\( *(?:readlink -\w+|realpath)(?: --)? +{_SELF} *\)\"?)"
_DIRNAME = rf"\$\( *dirname(?: --)? +{_FILE} *\)|\$\{{(?:0|BASH_SOURCE(?:\[0\])?)%/\*\}}"
_QUIET = r"(?:&>|>) */dev/null(?: *2>&1)? *"
_FOLDER = re.compile(
    rf"\$\( *cd(?: --| -P)? +\"?(?:{_DIRNAME})(?P<below>(?:/[\w.]+)*)\"? *(?:{_QUIET})?&& *pwd(?: -[LP])? *\)"
    rf"|(?:{_DIRNAME})"
)
"""A pattern for ``$(dirname "$0")``, ``$(cd "$(dirname "$0")/.." && pwd)`` and their variants."""
_REAL = re.compile(r"readlink|realpath")
_PHYSICAL = re.compile(r"(?:cd|pwd) -P")
_MOST = 20
"""Maximum number of expressions that toolkit replaces in a script."""


def with_own_folder(tree: FileTree, path: str, text: str) -> str:
    """In ``text``, the text of the script ``path``, replace each expression such as ``$(dirname "$0")`` with
    the path of the script's folder. Return the new text.
    """
    plain = posixpath.dirname(path)
    resolved = posixpath.dirname(files.resolve(tree, path) or path)
    physical = files.resolve(tree, plain) or plain

    def folder(match: re.Match[str]) -> str:
        own = resolved if _REAL.search(match[0]) else physical if _PHYSICAL.search(match[0]) else plain
        return posixpath.normpath(own + (match["below"] or ""))

    return _FOLDER.sub(folder, text, count=_MOST)
