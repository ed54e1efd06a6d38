"""Find faults in a command, such as a missing file, or a launcher (``mpirun``) that each rank would start."""

import os
import posixpath
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from toolkit.folders import has_file, has_folder
from toolkit.image.loader.wrapper import certain_programs
from toolkit.image.software.contents import Contents
from toolkit.job.project.code import Code
from toolkit.job.project.elsewhere import fix_for_module
from toolkit.job.project.executables import shell_script
from toolkit.job.project.plain import NOTEBOOK
from toolkit.model.finding import LaunchFault
from toolkit.model.jobfile import JobFile
from toolkit.near import suggest_near
from toolkit.program.command import read_shell
from toolkit.program.launchers import LAUNCHERS
from toolkit.program.shellwords import SHELL_ONLY, SHELLS
from toolkit.render import quote_word

_CONTAINERS = frozenset({"apptainer", "singularity", "docker", "podman", "enroot", "shifter", "ch-run"})
_SHELL_FILES = frozenset({".sh", ".bash", ".sbatch", ".slurm", ".job"})
_NOT_PROGRAMS = SHELL_ONLY | {"module", "ml"}
_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*=)")
_VARIABLE = re.compile(r"[\w./:=@,+-]*\$(\{[A-Z][A-Z0-9_]*\}|[A-Z][A-Z0-9_]*|\([^()]*\))[\w./:=@,+-]*")
"""A pattern for a word with a shell variable or a shell command, such as ``$SCRATCH/data`` or
``$(hostname):29500``."""
_PLAIN = "add the package that contains this command to the image, or use `toolkit env create` to add it"
_INLINE = re.compile(r"-[a-z]*c")
_OPERATORS = frozenset({"&", "&&", "|", "||", ";", ">", ">>", "<", "2>&1"})


def faults(code: Code, job: JobFile, contents: Contents | None, *, in_folder: bool) -> Iterator[LaunchFault]:
    """Yield the faults that toolkit finds in the words of a command.

    Args:
        code: the job's command, with the facts about its program from files on this machine.
        job: the job that runs the command.
        contents: the commands and modules of the image, or ``None`` if toolkit could not read them.
        in_folder: true if the job starts in the current folder or in a copy of this folder.
    """
    first = code.words[0]
    if match := _ASSIGNMENT.match(first):
        yield LaunchFault(
            f"`{match[1]}` sets a variable, but toolkit would start this word as the program",
            f"give `--env {quote_word(first)}`, or write `env` before the variable",
        )
    if first in _NOT_PROGRAMS:
        more = "; or load the module with `--module NAME`" if first in {"module", "ml"} else ""
        yield LaunchFault(
            f"`{first}` is a command of the shell, not a program", f"write `-- sh -c '{first} …'`{more}"
        )
    if notebook := next((word for word in code.words[1:2] if word.endswith(".ipynb")), ""):
        yield LaunchFault(f"{notebook}: Python does not run notebooks", NOTEBOOK.format(quote_word(notebook)))
    if stray := next((word for word in code.words if word in _OPERATORS), ""):
        yield LaunchFault(
            f"the program would get `{stray}` as an argument, because no shell reads the command",
            f"run the command in a shell: -- sh -c {quote_word(' '.join(code.words))}",
        )
    if unexpanded := next(filter(_VARIABLE.fullmatch, _arguments(code)), ""):
        yield LaunchFault(
            f"the program would get `{unexpanded}` unchanged, because no shell reads the command",
            f"run the command in a shell: -- sh -c {quote_word(' '.join(code.words))}",
        )
    ranks = (job.nodes or 1) * (job.ranks_per_node or 1)
    if ranks > 1 and (found_launcher := _launcher(code)):
        where, name = found_launcher
        yield LaunchFault(
            f"{where}each of the {ranks} ranks would run `{name}`, which starts more ranks", fix_of(name)
        )
    if in_folder:
        yield from _absent(code, contents)


def _arguments(code: Code) -> list[str]:
    """Return the words of the command. The list is empty if the command contains an option such as ``-c``.
    After such an option, a shell or Python runs a word as code.
    """
    return [] if any(_INLINE.fullmatch(word) for word in code.words) else list(code.words)


def _launcher(code: Code) -> tuple[str, str] | None:
    """Return a prefix for messages, and the name of the launcher, such as mpirun, that each rank would start.

    The prefix is ``SCRIPT: `` if a shell script calls the launcher, and empty if the command itself starts
    the launcher. The result is ``None`` if the ranks start no launcher.
    """
    name = posixpath.basename(code.facts.program)
    if name in LAUNCHERS:
        return "", name
    script = code.start / (_script(code) if name in SHELLS else code.facts.program)
    try:
        text = read_shell(script) if script.suffix in _SHELL_FILES else None
    except OSError:
        return None
    started = (posixpath.basename(program) for program in certain_programs(text or ""))
    return next(((f"{script.name}: ", program) for program in started if program in LAUNCHERS), None)


def _absent(code: Code, contents: Contents | None) -> Iterator[LaunchFault]:
    """Yield a fault if the program or script in the command does not exist or is not executable.

    toolkit checks only relative paths.
    """
    program, path = code.facts.program, code.start / code.facts.program
    named = [word for word in (program, _script(code)) if "/" in word or word == _script(code)]
    for word in named:
        if word and not posixpath.isabs(word) and not has_file(code.start / word) and not _is_here(word):
            folder = contents.applications.get(word.removeprefix("./")) if contents else None
            near = "" if folder else suggest_near(word, _names(code))
            fix = f"write `{folder}/{posixpath.basename(word)}`, the file in the image" if folder else ""
            yield LaunchFault(f"{word}: no such file{near}", fix or "correct the name")
    if "/" in program and not posixpath.isabs(program) and has_file(path) and not os.access(path, os.X_OK):
        start = "python" if program.endswith(".py") else "bash"
        yield LaunchFault(
            f"{program} is not executable",
            f"run `chmod +x {quote_word(program)}`, or write `{start} {program}`",
        )


def _script(code: Code) -> str:
    """Return the script that Python or a shell would run.

    The result is empty if the command names no script. The result is also empty if toolkit has read the
    Python script, because the script then certainly exists.
    """
    at, words = code.facts.script, code.words
    if at is not None:
        return words[at] if words[at] != "-" and not code.facts.facts else ""
    return shell_script(code)


def _is_here(word: str) -> bool:
    path = Path.cwd() / word
    return has_file(path) or has_folder(path)


def _names(code: Code) -> list[str]:
    """Return the file names in the command's start folder, each with and without ``./``."""
    try:
        return [name for file in code.start.iterdir() for name in (file.name, f"./{file.name}")]
    except OSError:
        return []


def knows_modules(job: JobFile, contents: Contents) -> bool:
    """Return whether ``contents`` lists every module outside the project that Python can import in the job.

    Mounted folders, PYTHONPATH and ``.pth`` files may add modules whose names toolkit does not know.
    """
    added = job.binds or "PYTHONPATH" in (job.env or {})
    return contents.whole and bool(contents.modules) and not added


def module_faults(code: Code, job: JobFile, image: str, contents: Contents) -> Iterator[LaunchFault]:
    """Yield a fault if the module after ``python -m`` is neither in the project nor in the image."""
    words = code.words
    if code.facts.facts or "-m" not in words[:-1]:
        return
    python = posixpath.basename(code.facts.program).startswith("python")
    if not python or job.binds or "PYTHONPATH" in (job.env or {}):
        return
    module = words[words.index("-m") + 1]
    top = module.partition(".")[0]
    if has_folder(code.start / top):
        if top not in contents.modules:
            yield LaunchFault(f"the project has no module `{module}`", "correct the name, or add the file")
    elif contents.whole and contents.modules and top not in contents.modules | sys.stdlib_module_names:
        yield LaunchFault(
            f"neither {image} nor the project has a module `{top}`{suggest_near(top, contents.modules)}",
            fix_for_module(code, top)
            or fix_in_image(contents, top)
            or "launch in the folder that contains the package, or name that folder with --project DIR",
        )


def fix_in_image(contents: Contents, module: str) -> str:
    """Return a fix that gives ``--env PYTHONPATH=DIR`` for a module in an image folder such as ``/app``.

    The result is empty if toolkit knows no folder with this module.
    """
    folder = contents.applications.get(module) or contents.applications.get(f"{module}.py")
    return f"give `--env PYTHONPATH={folder}`, the image folder that has the module" if folder else ""


def fix_of(program: str) -> str:
    """Return the fix for a command that the image lacks, or that the ranks must not start."""
    if " " in program and re.search(r"[&|;<>$]", program):
        return f"run the command in a shell: -- sh -c {quote_word(program)}"
    if " " in program:
        return f"write the words separately: -- {program}"
    if program in LAUNCHERS:
        return (
            f"leave out `{program}`: toolkit starts the ranks that `--nodes` and `--ranks-per-node` request"
        )
    if program in _CONTAINERS:
        return f"leave out `{program}`: toolkit starts the container from `--image`"
    return _PLAIN
