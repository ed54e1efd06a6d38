"""The program that tries MPI in an image: in Python where the image has it, else compiled here or there."""

import platform
import posixpath
from dataclasses import dataclass

from toolkit.data import shipped
from toolkit.errors import Missing
from toolkit.model.facts import ImageFacts
from toolkit.model.prediction import Mode
from toolkit.run.command import Command, Runner
from toolkit.run.local import LocalRunner

SECONDS = 120
"""After this long a rank that waits is ended by an alarm: start-up and messages take seconds on a node
that is not shared, and a minute where four ranks share two busy cores."""

_STARTER = "trial.sh"
_COMPILERS = ("cc", "gcc", "clang")
_COMPILE_SECONDS = 60.0
_ASK_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class TrialProgram:
    """A file to be put beside the job."""

    name: str
    content: bytes
    mode: int = 0o644


def command(folder: str, library: str, ranks: int) -> tuple[str, ...]:
    """Return the words of one rank, for programs that were put into ``folder``."""
    return ("sh", posixpath.join(folder, _STARTER), library, str(ranks), str(SECONDS))


def programs(image: ImageFacts, runner: Runner) -> tuple[TrialProgram, ...]:
    """Return the files of the trial: the Python one, the C one where something compiles it, and what chooses.

    Raises:
        Missing: if the image has no Python, and no glibc for the compiled one, or nothing compiles it.
    """
    folder = shipped("containers") / "live"
    starter = TrialProgram(_STARTER, (folder / _STARTER).read_bytes())
    python = TrialProgram("trial.py", (folder / "trial.py").read_bytes())
    if image.glibc is None and image.python is None:
        why = image.absent.get("glibc") or image.unknown.get("glibc", "not known which it has")
        raise Missing(f"--live: the image has no Python, and the C program needs glibc: {why}")
    made = _compiled((folder / "trial.c").read_bytes(), image.architecture, runner) if image.glibc else b""
    if made:
        return (starter, python, TrialProgram("trial", made, 0o755))
    if image.python is None:
        raise Missing(
            "--live: the image has no Python, and no C compiler for it was found",
            fix="install gcc here; the program is small and needs no MPI to be compiled",
        )
    return (starter, python)


def library(image: ImageFacts, mode: Mode) -> str:
    """Return what the trial loads: the library that programs of the image load, by name if one is bound in.

    Raises:
        Missing: if there is none.
    """
    if image.mpi is None:
        raise Missing("--live: no MPI library was found in the image, so that there is nothing to try")
    if mode == "bind":
        return image.mpi.soname or posixpath.basename(image.mpi.library)
    return image.mpi.library


def compile_words(compiler: str, architecture: str, source: str, target: str) -> tuple[str, ...]:
    """Return the command that compiles the trial for old C libraries; ``trial.c`` says why so."""
    level = ("-march=x86-64",) if architecture == "x86_64" else ()
    linker = ("-nostartfiles", "-Wl,--no-as-needed", "-Wl,-z,nopack-relative-relocs", "-l:libdl.so.2")
    return (compiler, "-O1", *level, "-o", target, source, *linker)


def _compiled(source: bytes, architecture: str | None, runner: Runner) -> bytes:
    """Return the program as a compiler here or at the runner's place makes it, or nothing."""
    here = architecture in {None, platform.machine()}
    local: Runner = LocalRunner()
    places = [local] if here else []
    if runner.place != local.place:
        places.append(runner)
    for place in places:
        if made := _compile(source, architecture or platform.machine(), place):
            return made
    return b""


def _compile(source: bytes, architecture: str, place: Runner) -> bytes:
    """Return the program, or nothing where no compiler makes it."""
    made = place.run(Command.of("mktemp", "-d", timeout=_ASK_SECONDS))
    folder = made.text.strip()
    if not made.ok or not folder.startswith("/"):
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
    except Missing:  # there is no such compiler
        return False
