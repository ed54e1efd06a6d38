"""Predict the error that ld.so prints if it cannot start a program of an image."""

import posixpath
import re
from collections.abc import Iterable

from toolkit.image.loader.loader import Loader
from toolkit.image.loader.symbols import Symbols, read_symbols

_ITSELF = re.compile(r"ld(-linux[\w-]*|64)\.so\.\d\Z")
"""The names of ld.so, which defines symbols for all programs."""
_BASE = re.compile(r"(libc\.so\.6|libc-2[.\d]*\.so|ld-.*)\Z")
"""The names of the C library and of ld.so, which are always from the same build."""
_MOST_PROGRAMS = 8
_MOST = 150
"""Maximum number of libraries of a program. If a program loads more libraries, toolkit predicts no error. An
MPI program loads about forty libraries.
"""


class SymbolCheck:
    """Check whether libraries define the symbols that a program needs; read each library only once."""

    def __init__(self, loader: Loader) -> None:
        self._loader = loader
        self._known: dict[str, Symbols | None] = {}

    def of(self, path: str) -> Symbols | None:
        real = self._loader.real_path(path) or path
        if real not in self._known:
            self._known[real] = read_symbols(self._loader.pages(real))
        return self._known[real]

    def refusal(self, path: str, *, symbols: bool = True, scope: Iterable[str] = ()) -> str | None:
        """Return the error that ld.so prints when it loads a file, or None.

        None means that ld.so loads the file, or that toolkit cannot predict whether ld.so loads the file.

        ``scope`` are files that the process has already loaded. If ``symbols`` is false, toolkit compares
        only symbol versions, not symbols. Callers choose this for a Python extension, because the Python
        interpreter defines some of the symbols that the extension needs.
        """
        closure, whole = self._loader.closure(path)
        if not whole or None in closure.values() or len(closure) > _MOST:
            return None
        libraries = {soname: path for soname, path in closure.items() if path}
        files = (path, *libraries.values())
        line = self._by_version(files, libraries)
        if line is None and symbols and any(map(_ITSELF.match, libraries)):
            line = self._by_symbol(files, (*scope, *files))
        return f"{path}: {line}" if line else None

    def _by_version(self, files: Iterable[str], libraries: dict[str, str]) -> str | None:
        for file in files:
            file_symbols = self.of(file)
            for soname, versions in (file_symbols.required_versions if file_symbols else {}).items():
                library = libraries.get(soname)
                symbols = self.of(library) if library else None
                if symbols is None or not symbols.own_versions:
                    continue  # ld.so accepts a library without symbol versions
                if missing := next((v for v in versions if v not in symbols.own_versions), None):
                    return f"{library}: version `{missing}' not found (required by {file})"
        return None

    def _by_symbol(self, files: Iterable[str], scope: Iterable[str]) -> str | None:
        exports: set[bytes] = set()
        for file in scope:
            symbols = self.of(file)
            if symbols is None:
                return None
            exports |= symbols.exports
        for file in files:
            symbols = None if _BASE.match(posixpath.basename(file)) else self.of(file)
            if lost := sorted((symbols.imports if symbols else frozenset()) - exports):
                return f"symbol lookup error: {file}: undefined symbol: {lost[0].decode('utf-8', 'replace')}"
        return None


def refusals(loader: Loader, programs: dict[str, str]) -> dict[str, str]:
    """Return ld.so's error, by program path, for each program that ld.so cannot start. ``programs`` maps the
    path of a program to the path of its MPI library, or to an empty text if ld.so does not find the library.
    """
    symbolic, lines = SymbolCheck(loader), {}
    for path, library in list(programs.items())[:_MOST_PROGRAMS]:
        extension = ".so" in posixpath.basename(path)
        line = symbolic.refusal(path, symbols=not extension)
        if line is None and extension and library:
            line = symbolic.refusal(library)
        if line:
            lines[path] = line
    return lines
