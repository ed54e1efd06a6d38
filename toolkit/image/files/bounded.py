"""Limit the work of reading an image, and record the files that toolkit cannot read."""

from toolkit.errors import CheckFailed
from toolkit.folders import is_below
from toolkit.image.files.marks import Marks
from toolkit.image.files.tree import MAX_READ, FileTree, Kind, Sliced

_LOOKS = 1_000_000
"""Maximum number of path lookups in an image."""
_SIZE = 1 << 30
"""Maximum number of bytes that toolkit reads from the files of an image.

For a training image of 1.5 GB, toolkit uses about 3 % of this limit and of ``_LOOKS``. Even if an image
exceeds a limit, toolkit stops within a few seconds.
"""
_ENTRIES = 800_000
"""Maximum total number of tar members in an image's archive and all its layers."""
_INDEX = 96 << 20
"""Memory limit in bytes of toolkit's index of an image's files: enough for 400,000 files. Large training
images have 300,000 files.
"""
_ENTRY = 220
"""The memory in bytes of one entry of the file index, not counting the entry's name and link target."""
_INFLATED = 2 << 30
_RATIO = 64
"""toolkit unpacks at most ``_INFLATED`` bytes, plus ``_RATIO`` bytes for each stored byte of the image.

A layer usually unpacks to two to five times its size. toolkit may unpack parts of the layer several times, so
the limit is higher.
"""


class Budget:
    """The work that toolkit may still do for one image: lookups, read bytes, listed files, index memory and
    unpacked bytes.
    """

    def __init__(self, name: str, looks: int = _LOOKS, size: int = _SIZE) -> None:
        self._name, self._looks, self._size = name, looks, size
        self.marks = Marks()
        self._entries, self._index, self._inflated = _ENTRIES, _INDEX, _INFLATED

    def look(self, count: int = 1) -> None:
        self._looks -= count
        if self._looks < 0:
            raise self._endless("the image needs too many path lookups, so its links may form a loop")

    def read(self, count: int) -> None:
        self._size -= count
        if self._size < 0:
            raise self._endless("the files that toolkit needs exceed toolkit's size limit")

    def list(self) -> None:
        """Count one tar member; raise ``CheckFailed`` if the image has more members than toolkit's limit."""
        self._entries -= 1
        if self._entries < 0:
            raise self._endless("the image lists more files than toolkit's limit")

    def keep(self, texts: int) -> None:
        """Subtract the memory of a new entry of the file index from the budget; ``texts`` is the size of the
        entry's name and link target in bytes.
        """
        self._index -= _ENTRY + texts
        if self._index < 0:
            raise self._endless("the image lists more files than toolkit's limit")

    def add_stored(self, size: int) -> None:
        """Increase the limit of unpacked bytes by ``_RATIO`` times ``size``.

        ``size`` is the number of bytes of an archive, or of one file in an OCI layout.
        """
        self._inflated += _RATIO * size

    def inflate(self, count: int) -> None:
        self._inflated -= count
        if self._inflated < 0:
            raise self._endless("the image decompresses to far more than its size")

    def _endless(self, reason: str) -> CheckFailed:
        return CheckFailed(
            f"{self._name}: toolkit stopped reading: {reason}",
            fix="build the image again from sources that you trust",
        )


class BoundedTree:
    """A file tree with a budget.

    If toolkit cannot read an existing file, ``unread`` maps the file's path to the reason. ``hidden`` are the
    folders of the image that a program in the container cannot read, because the runtime mounts other folders
    over them.
    """

    def __init__(self, tree: FileTree, budget: Budget, hidden: tuple[str, ...] = ()) -> None:
        self._tree, self._budget = tree, budget
        self.hidden = hidden
        self._kinds: dict[str, Kind | None] = {}
        self._names: dict[str, tuple[str, ...]] = {}
        self.unread: dict[str, str] = {}

    def kind(self, path: str) -> Kind | None:
        self._budget.look()
        if path not in self._kinds:
            self._budget.keep(len(path))
            self._kinds[path] = self._kind(path)
        return self._kinds[path]

    def names(self, path: str) -> tuple[str, ...]:
        if path not in self._names:
            self._names[path] = self._list(path)
        self._budget.look(1 + len(self._names[path]))
        return self._names[path]

    def target(self, path: str) -> str:
        try:
            target = self._tree.target(path)
        except OSError as error:
            self._note(path, error)
            return ""
        self._budget.look(1 + len(target))
        return target

    def content(self, path: str, limit: int = MAX_READ) -> bytes:
        try:
            content = self._tree.content(path, limit)
        except OSError as error:
            self._note(path, error)
            return b""
        self._budget.read(len(content))
        return content

    @property
    def sliced(self) -> bool:
        """Whether the tree can read a part of a file without reading the bytes before that part."""
        return isinstance(self._tree, Sliced)

    def piece(self, path: str, offset: int, size: int) -> bytes:
        if not isinstance(self._tree, Sliced):
            return self.content(path)[offset : offset + size]
        try:
            piece = self._tree.piece(path, offset, min(size, MAX_READ))
        except OSError as error:
            self._note(path, error)
            return b""
        self._budget.read(len(piece))
        return piece

    def mount_over(self, path: str) -> str | None:
        """Return the hidden folder that is or contains ``path``, or None if no mount hides ``path``."""
        return next((folder for folder in self.hidden if is_below(path, folder)), None)

    def _kind(self, path: str) -> Kind | None:
        if self.hidden and (over := self.mount_over(path)) is not None:
            return "folder" if path == over else None
        try:
            return self._tree.kind(path)
        except OSError as error:
            self._note(path, error)
            return None

    def _list(self, path: str) -> tuple[str, ...]:
        if self.hidden and self.mount_over(path) is not None:
            return ()
        try:
            return self._tree.names(path)
        except OSError as error:
            self._note(path, error)
            return ()

    def _note(self, path: str, error: OSError) -> None:
        self.unread[path] = error.strerror or str(error)
