"""Test that toolkit predicts the error line that ld.so prints for a program with missing symbols."""

from pathlib import Path

import pytest

from tests.unit.image.sifs import sandbox
from toolkit.image.files.folder import FolderTree
from toolkit.image.files.pages import pages_of
from toolkit.image.loader.loader import Loader
from toolkit.image.loader.refusal import SymbolCheck, refusals
from toolkit.image.loader.symbols import read_symbols

SHELL = Path("/bin/sh").resolve()
LOADER = Path("/lib64/ld-linux-x86-64.so.2")
_LIBCS = map(Path, ("/lib/x86_64-linux-gnu/libc.so.6", "/lib64/libc.so.6"))
LIBC = next((path for path in _LIBCS if path.exists()), None)
pytestmark = pytest.mark.skipif(LIBC is None or not LOADER.exists(), reason="a C library of x86-64 is read")
PROGRAM = "/bin/program"


def loader_of(path, program):
    assert LIBC is not None
    files = {
        PROGRAM: program,
        "/lib/libc.so.6": LIBC.read_bytes(),
        "/lib64/ld-linux-x86-64.so.2": LOADER.read_bytes(),
    }
    return Loader(FolderTree(sandbox(path, files)), {})


def test_a_real_program_is_not_refused(tmp_path):
    loader = loader_of(tmp_path, SHELL.read_bytes())
    assert SymbolCheck(loader).refusal(PROGRAM) is None
    assert refusals(loader, {PROGRAM: ""}) == {}


def test_a_version_that_the_library_does_not_define_is_named_as_the_loader_does(tmp_path):
    program = SHELL.read_bytes().replace(b"GLIBC_2.2.5\0", b"GLIBC_9.9.9\0")
    line = f"{PROGRAM}: /lib/libc.so.6: version `GLIBC_9.9.9' not found (required by {PROGRAM})"
    assert refusals(loader_of(tmp_path, program), {PROGRAM: ""}) == {PROGRAM: line}


def test_a_symbol_that_is_bound_at_the_start_and_missing_is_named(tmp_path):
    content = SHELL.read_bytes()
    found = read_symbols(pages_of(content))
    assert found is not None
    name = max(found.imports, key=len)
    other = b"x" * len(name)
    loader = loader_of(tmp_path, content.replace(b"\0" + name + b"\0", b"\0" + other + b"\0"))
    line = f"{PROGRAM}: symbol lookup error: {PROGRAM}: undefined symbol: {other.decode()}"
    assert SymbolCheck(loader).refusal(PROGRAM) == line
    assert SymbolCheck(loader).refusal(PROGRAM, symbols=False) is None


def test_what_lacks_a_library_or_is_damaged_is_not_judged_by_symbols(tmp_path):
    content = SHELL.read_bytes()
    loader = Loader(FolderTree(sandbox(tmp_path / "a", {PROGRAM: content})), {})
    assert SymbolCheck(loader).refusal(PROGRAM) is None
    assert read_symbols(pages_of(b"#!/bin/sh\n")) is None
    assert read_symbols(pages_of(b"")) is None
