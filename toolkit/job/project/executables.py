"""Find faults of executable files, such as Windows line endings, or an interpreter that the image lacks."""

import posixpath
import re
from collections.abc import Iterator
from pathlib import Path

from toolkit.folders import has_file
from toolkit.image.loader.elf import read_elf
from toolkit.image.loader.wrapper import certain_programs
from toolkit.image.software.contents import Contents
from toolkit.job.project.code import Code
from toolkit.model.facts import ImageFacts
from toolkit.model.finding import LaunchFault
from toolkit.model.jobfile import JobFile
from toolkit.near import suggest_near
from toolkit.program.command import read_shell
from toolkit.program.launchers import LAUNCHERS
from toolkit.program.shellwords import SHELLS
from toolkit.render import quote_word
from toolkit.versions import older

_ELF = b"\x7fELF"
_GLIBC = "GLIBC_"
_LONGEST_PROGRAM = 256 << 20
_FIRST_LINE = 256
_SYSTEM = frozenset({"/bin", "/usr/bin", "/usr/local/bin"})
_OWN = re.compile(r"^\s*(?:function\s+)?([\w-]+)\s*\(\)|^\s*alias\s+([\w-]+)=", re.MULTILINE)
_ENVIRONMENTS = frozenset({"conda", "mamba", "micromamba", "module", "ml", "spack", "poetry", "pipenv", "uv"})
"""Commands that set up a software environment on a host. A container gets its software from the image."""
_ENV = "toolkit env create"


def faults(
    code: Code, job: JobFile, image: str, facts: ImageFacts, contents: Contents | None
) -> Iterator[LaunchFault]:
    """Yield the faults of the compiled program, or of the script, that a command executes.

    Args:
        code: the job's command, with the facts about its program from files on this machine.
        job: the job that runs the command.
        image: the name of the image.
        facts: the facts of the image; some facts may be unknown.
        contents: the commands and modules of the image, or ``None`` if toolkit could not read them.
    """
    program = code.facts.program
    shell = posixpath.basename(program) in SHELLS
    name = shell_script(code) if shell else program if "/" in program else ""
    path = code.start / name
    if not name or posixpath.isabs(name) or not has_file(path):
        return
    try:
        with path.open("rb") as file:
            head = file.read(_FIRST_LINE)
    except OSError:
        return
    if head.startswith(_ELF):
        yield from _binary(path, name, job, image, facts, contents)
        return
    text = read_shell(path) or ""
    first = head.split(b"\n", 1)[0]
    started = head.startswith(b"#!") and not shell
    if first.endswith(b"\r") and (shell or started):
        yield LaunchFault(f"{name} has Windows line endings", f"run `sed -i 's/\\r$//' {quote_word(name)}`")
    elif started and contents is not None and not job.binds:
        yield from _interpreter(name, first[2:].decode("utf-8", "replace"), image, contents)
    if contents is not None and (shell or any(shell_name in first for shell_name in (b"sh", b"bash"))):
        yield from _commands(name, text, image, contents)


def shell_script(code: Code) -> str:
    """Return the script in a command such as ``bash SCRIPT``; an empty string for any other command."""
    rest = code.words[1:]
    return rest[0] if posixpath.basename(code.words[0]) in SHELLS and rest and rest[0][:1] != "-" else ""


def _binary(
    path: Path, name: str, job: JobFile, image: str, facts: ImageFacts, contents: Contents | None
) -> Iterator[LaunchFault]:
    """Yield the faults of a compiled program: it is for another type of processor, or the image's glibc is
    too old for it, or the image lacks its libraries.
    """
    elf = read_elf(path.read_bytes()[:_LONGEST_PROGRAM])
    if elf is None:
        return
    fix = "compile the program in the image, or link the program statically"
    if elf.architecture and facts.architecture and elf.architecture != facts.architecture:
        yield LaunchFault(
            f"{name} is a program for {elf.architecture}, but {image} is for {facts.architecture}",
            f"compile the program for {facts.architecture}, preferably in the image itself",
        )
        return
    versions = [version.removeprefix(_GLIBC) for version in elf.versions if version.startswith(_GLIBC)]
    versions.sort(key=lambda version: [int(part) for part in version.split(".") if part.isdigit()])
    for newer in [version for version in versions if older(facts.glibc, version)][-1:]:
        yield LaunchFault(f"{name} needs glibc {newer}, but {image} has {facts.glibc}", fix)
    free = job.binds or "LD_LIBRARY_PATH" in (job.env or {}) or elf.rpath or elf.runpath
    if contents is not None and contents.libraries and not free:
        absent = [
            library
            for library in elf.needed
            if library not in contents.libraries and not library.startswith("ld-")
        ]
        if absent:
            yield LaunchFault(f"{name} needs {', '.join(absent[:3])}, which {image} does not have", fix)


def _interpreter(name: str, first_line: str, image: str, contents: Contents) -> Iterator[LaunchFault]:
    """Yield a fault if the image lacks the interpreter that the script's first line names."""
    words = first_line.split()
    if not words:
        return
    folder, program = posixpath.split(words[0])
    if program == "env":
        program = next((word for word in words[1:] if word[:1] != "-" and "=" not in word), "")
        folder = ""
    absent = program not in contents.commands or (folder and folder not in _SYSTEM | contents.folders)
    if program and absent:
        python = program.startswith("python")
        yield LaunchFault(
            f"{name} starts with `#!{first_line.strip()}`, but {image} does not have this interpreter",
            f"write `#!/usr/bin/env {'python3' if python else 'bash'}` as the first line, or start the file "
            f"with `{'python' if python else 'bash'} {name}`",
        )


def _commands(name: str, text: str, image: str, contents: Contents) -> Iterator[LaunchFault]:
    """Yield a fault for the first command that the shell script certainly runs but that the image lacks."""
    if re.search(r"\bPATH=|\bactivate\b", text) and "conda" not in text:
        return
    own = {path for pair in _OWN.findall(text) for path in pair}
    for word in certain_programs(text):
        plain = re.fullmatch(r"[\w.+-]+", word)
        if not plain or word in contents.commands | own | LAUNCHERS:
            continue
        if word == "python" and "python3" in contents.commands:
            fix = "write `python3`"
        elif word in _ENVIRONMENTS:
            fix = f"remove the lines with `{word}`: the image replaces the environment; "
            fix += f"use `{_ENV}` to add packages that the image lacks"
        else:
            fix = f"correct the name, or use `{_ENV}` to add the package that contains the command"
        yield LaunchFault(
            f"{name}: {image} has no command `{word}`{suggest_near(word, contents.commands)}", fix
        )
        return
