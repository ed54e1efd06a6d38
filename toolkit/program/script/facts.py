"""Facts that toolkit reads from the text of a Python program."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from toolkit.program.script.options import ProgramOptions

Kind = Literal["file", "beside", "argument", "option", "keyboard", "gpu", "command", "tensorflow-1"]


@dataclass(frozen=True, slots=True, order=True)
class Import:
    """An import in a file. ``module`` is the dotted name of the imported module. In the field ``relative`` of
    :class:`ScriptFacts`, this name starts with dots, as in ``..model``.

    ``optional`` is true if the program can run without the module, as with ``try: … except ImportError``.
    ``names`` are the names that ``from MODULE import NAMES`` imports.
    """

    module: str
    file: str
    line: int
    optional: bool = False
    names: tuple[str, ...] = ()

    @property
    def package(self) -> str:
        """The first part of the module's dotted name, such as ``torch``."""
        return self.module.partition(".")[0]


@dataclass(frozen=True, slots=True)
class SyntaxFault:
    """A syntax error in a file; ``text`` is the faulty line."""

    file: str
    line: int
    message: str
    text: str = ""


@dataclass(frozen=True, slots=True)
class Undefined:
    """A name that a file uses but does not define; ``hint`` is `` (did you mean X?)`` or empty."""

    name: str
    file: str
    line: int
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Need:
    """Something that a program certainly needs at run time: a file, an argument, the keyboard, a GPU, a
    command or a module.

    The meaning of ``text`` depends on ``kind``:

    - ``file``: the path of a file that the program reads.
    - ``beside``: the path of a file, if the program computes the path from ``__file__``.
    - ``argument``: the index of a file name in ``sys.argv``.
    - ``option``: the attribute of the parsed arguments whose value is a file name.
    - ``keyboard``, ``gpu``: the call that needs the keyboard or a GPU.
    - ``command``: the name of a program that the program starts.
    - ``tensorflow-1``: a name that only TensorFlow 1 has.
    """

    kind: Kind
    text: str
    file: str
    line: int


@dataclass(frozen=True, slots=True)
class ScriptFacts:
    """Facts about the text of a program and the project files that it imports.

    ``joins`` lists what connects the ranks: ``mpi``, ``horovod``, ``torch``, ``torchrun``, ``accelerate``,
    ``deepspeed``, ``lightning``, ``jax``, ``tf-config`` or ``keras-distribution``. ``serial`` is true if the
    ranks never connect, and false if the ranks connect. If toolkit cannot decide, ``serial`` is ``None``, and
    ``unknown`` lists the reasons. ``imports`` are imports of modules outside the project. ``missing`` are
    imports of project modules that toolkit does not find. ``files`` are the project files that toolkit read.
    ``trainer`` is true if the file ``path`` runs one of toolkit's trainers.
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
    """Whether the program reads an environment variable that contains its rank."""
    open_path: bool = False
    """Whether Python may find modules in folders that toolkit does not know. An example is a change of
    ``sys.path`` that toolkit cannot evaluate.
    """
    needs: tuple[Need, ...] = ()
    """Things that the file ``path`` certainly needs at run time. The field does not include the needs of
    imported files, because the program may import a file only under a condition.
    """
    relative: tuple[Import, ...] = ()
    """Relative imports in the file ``path``, which work only with ``python -m``."""
    words: frozenset[str] = frozenset()
    """String literals that appear more than once in the program and its project files, such as the name of
    a data file that the program writes and then reads.
    """
    options: ProgramOptions | None = None
    """The program's command-line options, or ``None`` if toolkit cannot find all of them."""
    says: tuple[tuple[str, str], ...] = ()
    """Variables and arguments that set the rendezvous (where the ranks find each other), with their values;
    ``$`` means a value that the program computes.
    """

    @property
    def packages(self) -> frozenset[str]:
        """The import names of packages outside the project that the program imports."""
        return frozenset(one.package for one in self.imports)
