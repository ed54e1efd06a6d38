"""Import the modules that a training takes from one file, not from thousands.

Each question for a file of a SIF goes through a file system in user space; ``import tensorflow`` asks some
20,000 of them, most for the compiled form of 2,600 modules. That is kept in one file here, in the order in
which it is wanted. What comes with a module stays where it is: sources, extension modules, data.

``bytecode.py`` writes the file in the image's build, and a ``.pth`` file imports this at the start of Python.
Python reads a folder as usual if it is newer than the file or a mount, so that packages count that the user
installs or mounts.
"""

import marshal
import os
import sys
from importlib.machinery import (
    BYTECODE_SUFFIXES,
    EXTENSION_SUFFIXES,
    SOURCE_SUFFIXES,
    ExtensionFileLoader,
    FileFinder,
    ModuleSpec,
    SourceFileLoader,
    SourcelessFileLoader,
)
from importlib.util import MAGIC_NUMBER, spec_from_file_location
from types import CodeType, ModuleType

FILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "toolkit_modules.bin")
KINDS = (
    (ExtensionFileLoader, EXTENSION_SUFFIXES),
    (SourceFileLoader, SOURCE_SUFFIXES),
    (SourcelessFileLoader, BYTECODE_SUFFIXES),
)

Places = dict[str, tuple[bool, int, int]]
"""Of one folder, by name of the module: whether it is a package, where its code begins, how long it is."""


def write(path: str, modules: list[tuple[str, bytes]]) -> None:
    """Write sources' paths and compiled code, in this order, as a file for :class:`Store`."""
    folders: dict[str, Places] = {}
    at = 0
    for source, code in modules:
        folder, name = os.path.split(source)
        is_package = name == "__init__.py"
        if is_package:
            folder, name = os.path.split(folder)
        folders.setdefault(folder, {})[name.removesuffix(".py")] = (is_package, at, len(code))
        at += len(code)
    table = marshal.dumps(folders)
    with open(path, "wb") as file:
        file.write(MAGIC_NUMBER + len(table).to_bytes(8, "little") + table)
        file.writelines(code for _, code in modules)


class Store:
    """The open file; what it holds is for the Python that wrote it."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.descriptor = self._open()
        head = os.pread(self.descriptor, 12, 0)
        if head[:4] != MAGIC_NUMBER:
            raise ValueError(f"{path} is from another version of Python")
        size = int.from_bytes(head[4:], "little")
        self.start = 12 + size
        self.folders: dict[str, Places] = marshal.loads(os.pread(self.descriptor, size, 12))

    def read(self, at: int, length: int) -> CodeType:
        if not self._is_open():
            self.descriptor = self._open()
        return marshal.loads(os.pread(self.descriptor, length, self.start + at))

    def trusts(self, folder: str) -> bool:
        """Return whether a folder is unchanged since the file was written."""
        try:
            there = os.stat(folder)
        except OSError:
            return False
        return there.st_dev == self.device and there.st_mtime <= self.written

    def _open(self) -> int:
        descriptor = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        self.identity = os.fstat(descriptor)
        self.written = self.identity.st_mtime
        # Of the folder: where file systems are laid over each other, a file can have another device.
        self.device = os.stat(os.path.dirname(self.path)).st_dev
        return descriptor

    def _is_open(self) -> bool:
        """Daemons close what they have not opened, and something else may have the number since."""
        try:
            now = os.fstat(self.descriptor)
        except OSError:
            return False
        return os.path.samestat(now, self.identity)


class Loader(SourceFileLoader):
    """Loads one module, with the source, resources and name of its file."""

    def __init__(self, fullname: str, path: str, store: Store, at: int, length: int) -> None:
        super().__init__(fullname, path)
        self.store, self.at, self.length = store, at, length

    def get_code(self, fullname: str) -> CodeType:
        return self.store.read(self.at, self.length)


class Finder(FileFinder):
    """Finds what one folder has: by the table first, and then by a look into it."""

    def __init__(self, path: str, store: Store) -> None:
        super().__init__(path, *KINDS)
        self.store, self.places = store, store.folders[path]

    def find_spec(self, fullname: str, target: ModuleType | None = None) -> ModuleSpec | None:
        name = fullname.rpartition(".")[2]
        if name not in self.places:
            return super().find_spec(fullname, target)
        is_package, at, length = self.places[name]
        folder = f"{self.path}/{name}"
        path = f"{folder}/__init__.py" if is_package else f"{folder}.py"
        return spec_from_file_location(
            fullname,
            path,
            loader=Loader(fullname, path, self.store, at, length),
            submodule_search_locations=[folder] if is_package else None,
        )


def install() -> None:
    """Load modules of the table's folders, which may have any place in the search path."""
    try:
        store = Store(FILE)
    except (OSError, ValueError, EOFError, TypeError):
        return  # Python finds its modules by itself

    def hook(path: str) -> Finder:
        if path not in store.folders or not store.trusts(path):
            raise ImportError(f"{path} is not in {store.path}")
        return Finder(path, store)

    sys.path_hooks.insert(0, hook)
    for folder in store.folders:
        sys.path_importer_cache.pop(folder, None)
