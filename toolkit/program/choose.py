"""Find the program kind of a launch from the user's options, the command, the script and the image.

Program kinds, such as MPI and PyTorch, differ in how the ranks connect.
"""

import posixpath
from collections.abc import Collection, Sequence

from toolkit.model.facts import ImageFacts
from toolkit.model.prediction import MODES, Mode, ProgramName, Request, Starter
from toolkit.program import ALL_PROGRAMS, mpi, of_mode, program_of_name


def programs_of(image: ImageFacts, request: Request) -> tuple[ProgramName, ...]:
    """Return the possible program kinds of a command, the most likely first."""
    if request.program:
        return (request.program,)
    if any(program.starter(request.command) for program in ALL_PROGRAMS):
        return ("torch",)
    if joined := program_of_joins(request.joins):
        return (joined,)
    return _of_image(image, request.command)


def program_of_joins(joins: Collection[str]) -> ProgramName | None:
    """Return the program kind of a script that connects its ranks with the libraries ``joins``. Return
    ``None`` if toolkit knows none of the libraries.

    A script that uses MPI and another library needs an MPI launch mode. Libraries such as PyTorch also work
    in an MPI launch mode.
    """
    order: tuple[ProgramName, ...] = ("horovod", "mpi", "torch", "jax", "tf-config")
    return next((name for name in order if program_of_name(name).JOINS & set(joins)), None)


def starter_of(program: ProgramName, request: Request) -> Starter:
    """Return the starter: the program, such as ``torchrun``, that starts the ranks of a node. The command,
    or a shell script in the command, runs the starter once on each node. Return an empty string if the
    command has no starter.
    """
    inside: Starter = "torchrun" if request.says.get("starter") == "torchrun" else ""
    return program_of_name(program).starter(request.command) or (inside if program == "torch" else "")


def modes_of(image: ImageFacts, request: Request) -> tuple[Mode, ...]:
    """Return the launch modes for a program, in the order of ``MODES``.

    The result always includes the launch mode that the user requests.
    """
    fitting = {mode for name in programs_of(image, request) for mode in program_of_name(name).MODES}
    return tuple(mode for mode in MODES if mode in fitting or mode == request.mode)


def best_modes(image: ImageFacts, request: Request) -> tuple[Mode, ...]:
    """Return the launch modes of the most likely program kind; toolkit prefers these modes to all others. For
    MPI and Horovod, the result is empty, because :data:`toolkit.engine.predict.RANKING` alone ranks their
    modes.
    """
    first = program_of_name(programs_of(image, request)[0])
    return () if first.BY_MPI else first.MODES


def program_for(image: ImageFacts, request: Request, mode: Mode) -> ProgramName:
    """Return the kind of the program that a launch in ``mode`` starts.

    A launch mode with an MPI launcher can start every program kind. Every other launch mode can start only
    one program kind.
    """
    programs = programs_of(image, request)
    fitting = (name for name in programs if mode in program_of_name(name).MODES)
    other = of_mode(mode)
    return next(fitting, programs[0] if other is mpi else other.NAME)


def _of_image(image: ImageFacts, command: Sequence[str]) -> tuple[ProgramName, ...]:
    """Return the program kinds for which the image has libraries.

    If the image has or may have an MPI library, the result includes MPI, because toolkit does not check
    whether programs in the image use MPI.
    """
    if image.horovod is not None:
        return ("mpi", "horovod")
    frameworks = tuple(p.NAME for p in ALL_PROGRAMS if not p.BY_MPI and p.in_image(image))
    if frameworks and image.mpi is None and "mpi" in image.absent:
        return frameworks
    if frameworks and image.mpi4py is None and _is_python(command):
        return (*frameworks, "mpi", "horovod")
    if not frameworks and command and not _is_python(command) and "mpi" in image.absent:
        return ("serial",)
    return ("mpi", "horovod", *frameworks)


def _is_python(command: Sequence[str]) -> bool:
    return bool(command) and posixpath.basename(command[0]).startswith("python")
