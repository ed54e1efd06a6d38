"""What the text of a Python program shows."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from toolkit.program.script.options import ProgramOptions

Kind = Literal["file", "beside", "argument", "option", "keyboard", "gpu", "command", "tensorflow-1"]


@dataclass(frozen=True, slots=True, order=True)
class Import:
    """A module that a file imports, by its full dotted name.

    ``optional`` is true where the program has an answer to its absence, as in ``try: … except ImportError``.
    ``names`` are the names that ``from MODULE import NAMES`` imports.
    """

    module: str
    file: str
    line: int
    optional: bool = False
    names: tuple[str, ...] = ()

    @property
    def package(self) -> str:
        """The first part of the name."""
        return self.module.partition(".")[0]


@dataclass(frozen=True, slots=True)
class SyntaxFault:
    """Why a file is not Python; ``text`` is the line as it is in the file."""

    file: str
    line: int
    message: str
    text: str = ""


@dataclass(frozen=True, slots=True)
class Undefined:
    """A name that nothing in its file defines; ``hint`` is `` (did you mean X?)`` or empty."""

    name: str
    file: str
    line: int
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Need:
    """A thing that a program certainly needs at run time.

    ``kind`` is ``file`` (``text`` is its path), ``beside`` (``text`` is a path from ``__file__``),
    ``argument`` (``text`` is the place in ``sys.argv`` of a file that it reads), ``option`` (``text`` is
    the attribute that holds such a file), ``keyboard`` or ``gpu`` (``text`` is the call), or ``command``
    (``text`` is the name of a program that it starts), or ``tensorflow-1`` (``text`` is a name that
    TensorFlow 2 does not have).
    """

    kind: Kind
    text: str
    file: str
    line: int


@dataclass(frozen=True, slots=True)
class ScriptFacts:
    """Facts in the text of a program and of the project files that it imports.

    ``joins`` names how its ranks join: ``mpi``, ``horovod``, ``torch``, ``torchrun``, ``accelerate``,
    ``deepspeed``, ``lightning``, ``jax``, ``tf-config``, ``keras-distribution``. ``serial`` is true if
    nothing joins the ranks, false if something does, and ``None`` if the text does not show it; ``unknown``
    then has the reason. ``imports`` are modules outside the project, ``missing`` those that the project
    should have, ``files`` the project's files that were read. ``trainer`` says that the file runs a trainer.
    """

    path: Path
    joins: frozenset[str] = frozenset()
    serial: bool | None = None
    unknown: tuple[str, ...] = ()
    imports: tuple[Import, ...] = ()
    missing: tuple[Import, ...] = ()
    faults: tuple[SyntaxFault, ...] = ()
    files: tuple[Path, ...] = ()
    trainer: bool = False
    undefined: tuple[Undefined, ...] = ()
    reads_ranks: bool = False
    """The program reads a variable that contains its rank."""
    open_path: bool = False
    """It changes ``sys.path`` in a way that the text does not show, so any module may be found."""
    needs: tuple[Need, ...] = ()
    """What the program itself surely needs; its modules may be reached under a condition."""
    relative: tuple[Import, ...] = ()
    """Relative imports of the program itself, which only ``python -m`` can run."""
    words: frozenset[str] = frozenset()
    """Strings that appear more than once in its files, such as a file that it writes and then reads."""
    options: ProgramOptions | None = None
    """The options of the program, if the text shows all of them."""
    says: tuple[tuple[str, str], ...] = ()
    """Variables that the program sets and arguments that it passes, which decide where its ranks meet; ``$``
    is a computed value.
    """

    @property
    def packages(self) -> frozenset[str]:
        """The packages outside the project that the program imports, by import name."""
        return frozenset(one.package for one in self.imports)
