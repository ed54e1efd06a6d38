"""Find faults of a program before its job waits in the queue. The checks in this module change no file."""

import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from toolkit.errors import CheckFailed
from toolkit.image.software.contents import Contents
from toolkit.job.project import elsewhere, executables, needed, starts
from toolkit.job.project.code import Code
from toolkit.job.request.flags import Flags
from toolkit.knowledge.joins import distribution_of, joins
from toolkit.model.facts import ImageFacts
from toolkit.model.finding import LaunchFault
from toolkit.model.jobfile import JobFile
from toolkit.model.progress import Tell
from toolkit.near import suggest_near
from toolkit.program.script.facts import ScriptFacts, SyntaxFault
from toolkit.program.shellwords import SHELL_ONLY
from toolkit.render import quote_word

_OF_TOOLKIT = "toolkit"
_LASTING = re.compile(
    r"was never closed|^unmatched '|^closing parenthesis|^unexpected indent|^unindent does not match"
    r"|^expected an indented block|^Missing parentheses in call"
)
"""A pattern for Python 3.11's messages about code that every release of Python 3 rejects."""
_F_STRING = re.compile(r"\b[rR]?[fFtT][rR]?['\"]")
_NEWER_PYTHON = tuple(sys.version_info[:2])
_SHORTEST = 5
"""toolkit suggests similar names only for misspelt module names of at least this length, in letters."""
_PREFIXES = {"time", "nice", "stdbuf"}
_OF_DRIVER = {"nvidia-smi", "rocm-smi", "rocminfo"}
_WRAPPERS = {"mpicc", "mpicxx", "mpic++", "mpifort", "mpif90", "mpif77"}
_COMPILERS = {"gcc", "cc", "clang", "icc", "icx", "nvc", "gfortran", "ifort", "ifx", "nvfortran", "flang"}


def findings(
    code: Code,
    job: JobFile,
    image: str,
    contents: Contents | None,
    facts: ImageFacts,
    *,
    in_folder: bool = True,
    gpus: bool = False,
) -> list[LaunchFault]:
    """Return the faults of a program, in the order in which they would stop the job.

    Args:
        code: the job's command, with the facts about its program from files on this machine.
        job: the job that runs the command.
        image: the name of the image.
        contents: the commands and modules of the image, or ``None`` if toolkit could not read them.
        facts: the facts of the image; some facts may be unknown.
        in_folder: true if the job starts in the current folder or in a copy of this folder.
        gpus: true if the ranks may have GPUs: the job requests GPUs, or its partition or nodes have GPUs.
    """
    in_folder = in_folder and not job.workdir and not job.sweep
    faults = [*_syntax(code, facts.python or "")]
    if contents is not None:
        faults = [*_command(code, job, image, contents, gpus=gpus), *faults]
        faults += starts.module_faults(code, job, image, contents) if in_folder else ()
        faults += _imports(code, job, image, contents)
    faults += executables.faults(code, job, image, facts, contents) if in_folder else ()
    faults += needed.faults(
        code, job, image, contents, facts.tensorflow or "", in_folder=in_folder, gpus=gpus
    )
    return [
        *starts.faults(code, job, contents, in_folder=in_folder),
        *faults,
        *_missing(code, contents),
        *_undefined_names(code),
    ]


def with_python(code: Code, contents: Contents) -> Code:
    """Return the program with ``python3`` in place of ``python`` if the image has only ``python3``."""
    if code.words[0] != "python" or "python" in contents.commands or "python3" not in contents.commands:
        return code
    facts = replace(code.facts, program="python3")
    return replace(code, words=("python3", *code.words[1:]), facts=facts)


def _command(
    code: Code, job: JobFile, image: str, contents: Contents, *, gpus: bool
) -> Iterator[LaunchFault]:
    program = code.facts.program
    first = code.words[0]
    if first in _PREFIXES and first not in contents.commands:
        yield LaunchFault(
            f"{image} has no command `{first}`",
            f"leave out `{first}`; for `time`, you can also write -- bash -c 'time …'",
        )
    if program in _WRAPPERS and not contents.commands & _COMPILERS:
        yield LaunchFault(
            f"{image} has `{program}` but no compiler",
            "compile the program on the login node with the MPI version that the image has, or add a "
            "compiler such as gcc to the image",
        )
    if not program or "/" in program or program in contents.commands or program in SHELL_ONLY:
        return
    if any(name == "PATH" for name in (job.env or {})) or (program in _OF_DRIVER and gpus):
        return
    if program in _OF_DRIVER:
        yield LaunchFault(
            f"{image} has no command `{program}`, and the job does not request GPUs",
            "request GPUs with --gpus-per-node 1: the node's driver then provides the command",
        )
        return
    if program == "python" and "python3" in contents.commands:
        yield LaunchFault(f"{image} has no command `python`", "write `python3` instead")
        return
    local = (code.start / program).exists()
    fix = f"write `./{program}` to run the file of your project" if local else starts.fix_of(program)
    yield LaunchFault(f"{image} has no command `{program}`{suggest_near(program, contents.commands)}", fix)


def _syntax(code: Code, python: str) -> Iterator[LaunchFault]:
    newer = _newer(python)
    for facts in code.facts.facts:
        for fault in facts.faults:
            if (not newer or _is_lasting(fault)) and not fault.file.endswith(".ipynb"):
                shown = f": {fault.text.strip()}" if fault.text.strip() else ""
                yield LaunchFault(
                    f"{code.shorten(fault.file)}:{fault.line}: {fault.message}{shown}",
                    "correct the line",
                )


def _is_lasting(fault: SyntaxFault) -> bool:
    """Return whether every release of Python 3 rejects the faulty line.

    The result is false for a file with f-strings, because newer releases accept more f-strings. toolkit
    searches the whole file, because the line that Python reports may be far from the faulty f-string.
    """
    if _LASTING.search(fault.message) is None:
        return False
    try:
        return _F_STRING.search(Path(fault.file).read_text(errors="replace")) is None
    except OSError:
        return False


def _newer(python: str) -> bool:
    """Return whether the image's Python is newer than toolkit's own Python, which parsed the script."""
    parts = [int(part) for part in python.split(".")[:2] if part.isdigit()]
    return len(parts) > 1 and tuple(parts) > _NEWER_PYTHON


def _imports(code: Code, job: JobFile, image: str, contents: Contents) -> Iterator[LaunchFault]:
    if not starts.knows_modules(job, contents):
        return
    yield from _beside(code, image, contents)
    known = contents.modules | sys.stdlib_module_names | {_OF_TOOLKIT, "__main__"}
    reported: set[str] = set()
    for imported in (
        imported for facts in code.facts.facts if not facts.open_path for imported in facts.imports
    ):
        if imported.optional or imported.package in known or imported.package in reported:
            continue
        reported.add(imported.package)
        hint = suggest_near(imported.package, contents.modules) if len(imported.package) >= _SHORTEST else ""
        fix = elsewhere.fix_for_module(code, imported.package) or starts.fix_in_image(
            contents, imported.package
        )
        if elsewhere.is_empty_submodule(code, imported.package):
            fix = "get the files of the submodule: git submodule update --init"
        yield LaunchFault(
            f"{code.shorten(imported.file)}:{imported.line}: "
            f"{image} has no module `{imported.package}`{'' if fix else hint}",
            fix or _fix_of_package(code, job, imported.package),
        )


def _fix_of_package(code: Code, job: JobFile, module: str) -> str:
    """Return the fix for a missing module: create an environment with the module's package.

    If toolkit does not know the module's package, the fix also suggests copying the module's file.
    """
    package = distribution_of(module)
    listed = "requirements.txt"
    first = "run " if (code.root / listed).is_file() else f"write {package} into {listed}, then run "
    create = f"toolkit env create -f {listed} --over {quote_word(job.image or 'IMAGE')} -o my.env"
    known = package != module or module in joins().plain.packages
    beside = "" if known else f"copy {module}.py into the folder of the script; or "
    return f"{beside}{first}`{create}`, and launch with --env-image my.env"


def _beside(code: Code, image: str, contents: Contents) -> Iterator[LaunchFault]:
    """Yield a fault for a module whose framework is missing, such as ``horovod.torch`` without ``torch``."""
    imports = [imported for facts in code.facts.facts for imported in facts.imports if not imported.optional]
    for module, needs in joins().needs.beside.items():
        for imported in imports:
            names = (imported.module, *(f"{imported.module}.{name}" for name in imported.names))
            beside = any(f"{name}.".startswith(f"{module}.") for name in names)
            if beside and imported.package in contents.modules and needs not in contents.modules:
                fault = f"{image} has no `{needs}`, which `{module}` needs"
                yield LaunchFault(
                    f"{code.shorten(imported.file)}:{imported.line}: {fault}",
                    f"use an image that was built with {distribution_of(needs)}",
                )
                break


def _missing(code: Code, contents: Contents | None) -> Iterator[LaunchFault]:
    known = sys.stdlib_module_names | (contents.modules if contents else frozenset())
    for facts in code.facts.facts:
        for absent in facts.missing:
            if not absent.optional:
                package, hides = absent.package, absent.package in known
                yield LaunchFault(
                    f"{code.shorten(absent.file)}:{absent.line}: the project has no module `{absent.module}`",
                    f"rename the project's file or folder `{package}`: it hides the package of the same name"
                    if hides
                    else "correct the name, or add the file",
                )


def _undefined_names(code: Code) -> Iterator[LaunchFault]:
    for facts in code.facts.facts:
        for name in facts.undefined:
            yield LaunchFault(
                f"{code.shorten(name.file)}:{name.line}: the name `{name.name}` is not defined{name.hint}",
                _fix_of(name.name, facts),
            )


def _fix_of(name: str, facts: ScriptFacts) -> str:
    if name == "get_ipython":
        return f"remove Jupyter's commands, `!…` and `%…`, from {facts.path.name}: only a notebook runs them"
    return "define the name, or correct it"


def refuse(
    faults: list[LaunchFault], flags: Flags, tell: Tell, error: type[CheckFailed] = CheckFailed
) -> None:
    """Raise an error if a job has faults; with ``--force``, only print the faults.

    Raises:
        CheckFailed: if the job has faults; the error names the first fault and its fix, and then all
            other faults. The class of the exception is ``error``.
    """
    if not faults:
        return
    if flags.force:
        for fault in faults:
            tell.notice(f"{fault.message}; {fault.fix}")
        return
    first, *further = faults
    raise error(
        first.message,
        detail=[f"also: {fault.message}" for fault in further],
        fix=f"{first.fix}; or launch anyway with `--force`",
    )
