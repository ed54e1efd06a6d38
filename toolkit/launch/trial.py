"""Build the programs, in Python and if possible in C, with which ``doctor --live`` tests an image's MPI."""

import platform
import posixpath
from dataclasses import dataclass

from toolkit.data import shipped_folder
from toolkit.errors import Missing
from toolkit.model.facts import ImageFacts
from toolkit.model.prediction import Mode
from toolkit.run.command import Command, Runner
from toolkit.run.local import LocalRunner

SECONDS = 120
"""The time limit, in seconds, of each rank of a trial (the job of ``doctor --live``).

After this time, SIGALRM stops the rank. A trial takes some seconds on an idle node, and a minute if four
ranks share two busy cores.
"""

_STARTER = "trial.sh"
_COMPILERS = ("cc", "gcc", "clang")
_COMPILE_SECONDS = 60.0
_ASK_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class TrialProgram:
    """A file that each trial needs in its job's folder: the name, content and permissions (``mode``)."""

    name: str
    content: bytes
    mode: int = 0o644


def command(folder: str, library: str, ranks: int) -> tuple[str, ...]:
    """Return the command with which each of ``ranks`` ranks tests the MPI library ``library``.

    ``folder`` contains the trial programs.
    """
    return ("sh", posixpath.join(folder, _STARTER), library, str(ranks), str(SECONDS))


def programs(image: ImageFacts, runner: Runner) -> tuple[TrialProgram, ...]:
    """Return the trial files: the start script, the Python program and, if toolkit finds a compiler, the C
    program.

    If the image has Python with ctypes, the start script runs the Python program; otherwise, the C program.

    Raises:
        Missing: if the image has no Python, and toolkit cannot compile the C program for the image.
    """
    folder = shipped_folder("containers") / "live"
    starter = TrialProgram(_STARTER, (folder / _STARTER).read_bytes())
    python = TrialProgram("trial.py", (folder / "trial.py").read_bytes())
    if image.glibc is None and image.python is None:
        why = image.absent.get("glibc") or image.unknown.get(
            "glibc", "the release of the image's glibc is unknown"
        )
        raise Missing(
            f"--live: the test program needs Python or glibc, but toolkit found neither in the image: {why}"
        )
    binary = (
        _compile_program((folder / "trial.c").read_bytes(), image.architecture, runner)
        if image.glibc
        else b""
    )
    if binary:
        return (starter, python, TrialProgram("trial", binary, 0o755))
    if image.python is None:
        raise Missing(
            "--live: the image has no Python, and toolkit found no C compiler for the test program",
            fix="install gcc on this machine; the compilation does not need an MPI",
        )
    return (starter, python)


def library(image: ImageFacts, mode: Mode) -> str:
    """Return the path of the image's MPI library, which the trial loads.

    In mode ``bind``, the function returns only the library's file name, so that ld.so loads the host's
    library instead of the image's library.

    Raises:
        Missing: if the image has no MPI library.
    """
    if image.mpi is None:
        raise Missing("--live: the image has no MPI library to test")
    if mode == "bind":
        return image.mpi.soname or posixpath.basename(image.mpi.library)
    return image.mpi.library


def compile_words(compiler: str, architecture: str, source: str, target: str) -> tuple[str, ...]:
    """Return the command that compiles the C program for images with glibc 2.17 or newer.

    The comments in ``trial.c`` give the reasons for the compiler options.
    """
    level = ("-march=x86-64",) if architecture == "x86_64" else ()
    linker = ("-nostartfiles", "-Wl,--no-as-needed", "-Wl,-z,nopack-relative-relocs", "-l:libdl.so.2")
    return (compiler, "-O1", *level, "-o", target, source, *linker)


def _compile_program(source: bytes, architecture: str | None, runner: Runner) -> bytes:
    """Return the compiled C program, or empty bytes if no compiler works.

    toolkit first tries the compilers of this machine, unless the image has another architecture. toolkit then
    tries the compilers of the host on which the trial runs.
    """
    runs_locally = architecture in {None, platform.machine()}
    local: Runner = LocalRunner()
    places = [local] if runs_locally else []
    if runner.place != local.place:
        places.append(runner)
    for place in places:
        if binary := _compile(source, architecture or platform.machine(), place):
            return binary
    return b""


def _compile(source: bytes, architecture: str, place: Runner) -> bytes:
    """Return the C program, compiled by the first compiler that works on ``place``, or empty bytes."""
    result = place.run(Command.of("mktemp", "-d", timeout=_ASK_SECONDS))
    folder = result.text.strip()
    if not result.ok or not folder.startswith("/"):
        return b""
    file, target = posixpath.join(folder, "trial.c"), posixpath.join(folder, "trial")
    try:
        place.write(file, source)
        for compiler in _COMPILERS:
            words = compile_words(compiler, architecture, file, target)
            if _runs(place, Command(words, timeout=_COMPILE_SECONDS)):
                return place.read(target)
        return b""
    finally:
        place.run(Command.of("rm", "-rf", "--", folder, timeout=_ASK_SECONDS))


def _runs(place: Runner, command: Command) -> bool:
    try:
        return place.run(command).ok
    except Missing:  # the host does not have this compiler
        return False
