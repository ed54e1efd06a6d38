"""Find the project files that an import loads."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Project:
    """The folders in which Python finds modules, and the files of the project.

    ``files`` is ``None`` if all files on this machine belong to the project.
    """

    roots: tuple[Path, ...]
    files: frozenset[Path] | None = None

    def has(self, path: Path) -> bool:
        """Return whether a file exists and belongs to the project."""
        if self.files is not None and path.absolute() not in self.files:
            return False
        try:
            return path.is_file()
        except OSError:
            return False

    def with_root(self, root: Path) -> "Project":
        """Return the project with an additional module folder."""
        return self if root in self.roots else replace(self, roots=(*self.roots, root))

    def modules(self, name: str) -> list[Path]:
        """Return the files that ``import NAME`` runs: first the ``__init__.py`` of each package, then the
        module. Return an empty list for a module outside the project.
        """
        for root in self.roots:
            if found := self._below(root, name.split(".")):
                return found
        return []

    def holds(self, name: str) -> bool:
        """Return whether the first part of a dotted name is a module or package of the project."""
        first = name.partition(".")[0]
        return any(
            self.has(root / f"{first}.py") or self._is_package(root / first) for root in self.roots if first
        )

    def resolve_relative(self, name: str, file: Path) -> str | None:
        """Return the full name of a relative import such as ``..model``, or ``None`` if the importing file is
        outside the module folders.
        """
        level = len(name) - len(name.lstrip("."))
        folder = file.parent
        for _ in range(level - 1):
            folder = folder.parent
        for root in self.roots:
            try:
                parts = folder.absolute().relative_to(root.absolute()).parts
            except ValueError:
                continue
            return ".".join([*parts, *filter(None, [name.lstrip(".")])])
        return None

    def _below(self, root: Path, parts: list[str]) -> list[Path]:
        found: list[Path] = []
        folder = root
        for number, part in enumerate(parts):
            last = number == len(parts) - 1
            if self.has(folder / part / "__init__.py"):
                found.append(folder / part / "__init__.py")
            elif last and self.has(folder / f"{part}.py"):
                return [*found, folder / f"{part}.py"]
            elif not self._is_package(folder / part):
                return []
            folder /= part
        return found

    def _is_package(self, folder: Path) -> bool:
        """Return whether a folder is a Python package. A package needs no ``__init__.py`` (PEP 420), so any
        folder with files of the project is a package.
        """
        if self.files is None:
            return folder.is_dir() and any(folder.glob("*.py"))
        return any(folder.absolute() in file.parents for file in self.files)


def project_of(roots: Iterable[Path], files: Iterable[Path] | None) -> Project:
    """Return a project with the module folders ``roots`` and the files ``files``. Relative paths are relative
    to the current folder.
    """
    chosen = None if files is None else frozenset(file.absolute() for file in files)
    return Project(tuple(root.absolute() for root in roots), chosen)
