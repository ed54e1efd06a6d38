"""Follow a command through PATH, ``#!`` lines and shell scripts to the program that it finally starts in an
image."""

import ast
import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from toolkit.image.files import tree as files
from toolkit.image.loader.loader import Loader
from toolkit.image.loader.scripts import Environment
from toolkit.image.loader.wrapper import read_wrapper

_MAGIC = b"\x7fELF"
_HEAD = 256
_MOST_TEXT = 1 << 18
_MOST_STEPS = 4
"""Maximum number of programs in a chain: for example a script, the interpreter in its first line, and the
program that the script starts.
"""
_PYTHON = re.compile(r"python(\d(\.\d+)?)?\Z")
_SHELL = re.compile(r"(ba|da|k|z)?sh\Z")
_ASSIGNED = re.compile(r"([A-Za-z_]\w*)=(.*)\Z", re.DOTALL)
_HANDS_ON = re.compile(r'(?<!\w)exec\s+"?\$(@|\{@\}|\*)')
_LOGIN = re.compile(r"-[a-z]*l[a-z]*\Z|--login\Z")
_PROFILE_PATH = re.compile(r"else\s+PATH=\"([^\"$`]+)\"")
_LOADER = re.compile(r"ld(-linux[\w-]*|64)?\.so\.\d\Z|ld-\d[\d.]*\.so\Z")
_LOADER_VALUES = frozenset(
    ("--library-path", "--preload", "--argv0", "--inhibit-rpath", "--glibc-hwcaps-prepend")
)
"""The options of ld.so that take a value (ld.so --help, glibc 2.41)."""
_CLEARING = frozenset(("-", "-i", "--ignore-environment"))
_UNSET = re.compile(r"(?:-u|--unset=?)(?P<name>.*)")
_OF_ENV = re.compile(r"-S\Z|-v\Z|--(?:debug|split-string)\Z|--chdir=")
"""Options of ``env`` that toolkit ignores. toolkit reads the next word as another option, a variable or the
program (coreutils manual, env invocation)."""
_STARTS_OTHER = frozenset(("execve", "execvpe", "execle", "execlpe"))
"""Functions of Python's ``os`` that replace the process by a new program. The last argument of each function
is the environment of the new program.
"""
_INLINE = re.compile(r"-[a-z]*c\Z")
_WITH_VALUE = frozenset(("-W", "-X"))
_MPI_MODULES = frozenset(("mpi4py", "horovod"))
"""Python modules that load an MPI when a program imports them."""


@dataclass(frozen=True, slots=True)
class StartedProgram:
    """The program that a command starts at the end of its chain of wrappers.

    ``path`` is the program's file in the image. ``python`` is true for a Python interpreter; ``modules`` are
    then the modules that the Python script imports, or None if the script is unknown. ``environment`` has the
    program's variables, including variables that wrapper scripts set. ``chain`` lists the wrappers and then
    the program, in the order in which they start. ``reason`` says why the program is unknown, and is empty
    for a known program.
    """

    path: str = ""
    python: bool = False
    modules: frozenset[str] | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    chain: tuple[str, ...] = ()
    reason: str = ""
    undecided: Mapping[str, str] = field(default_factory=dict)
    """For each variable whose value toolkit cannot derive from a wrapper script, the reason."""
    clears: str = ""
    """The wrapper that removes the launcher's variables with ``env -i``, or empty."""
    filters: str = ""
    """The Python script that passes only some of its environment variables to a further program, or empty."""


def resolve_command(loader: Loader, command: tuple[str, ...], script: str | None = None) -> StartedProgram:
    """Return the program that ``command`` starts; ``script`` is the text of the user's Python script."""
    words, program = list(command), StartedProgram(environment=dict(loader.environment))
    for _ in range(_MOST_STEPS):
        words, program = _without_env(words, program)
        path = _find(loader, words[0], program) if words else None
        if path is None:
            return replace(program, reason=f"{words[0] if words else 'the command'}: not in the image")
        head = files.read(loader.tree, path, _HEAD) or b""
        program = replace(program, path=path, chain=(*program.chain, path))
        starter = [] if head.startswith(_MAGIC) else _first_line(head) or ["/bin/sh"]
        name = posixpath.basename(starter[0] if starter else words[0])
        if starter and (name == "env" or _PYTHON.match(name)):
            words = [*starter, path, *words[1:]]
        elif _SHELL.match(name):
            if any(map(_LOGIN.match, starter[1:] if starter else words[1:2])):
                program = replace(program, environment=_after_login(loader, program.environment))
            if name == "bash":
                program = _after_bash_env(loader, program)
            started = _of_shell(loader, [name, path, *words[1:]] if starter else words, program)
            if isinstance(started, StartedProgram):
                return started
            words, program = started
        elif starter:
            return replace(
                program, reason=f"{path}: toolkit cannot read scripts for the interpreter {starter[0]}"
            )
        elif _LOADER.match(posixpath.basename(path)) and len(words) > 1:
            words, program = _of_loader(words, program)
        else:
            return _of_binary(loader, words, program, script)
    return replace(program, reason=f"{command[0]}: starts a chain of more than {_MOST_STEPS} programs")


@dataclass(frozen=True, slots=True)
class EntryScript:
    """A shell script in the image's entry point that sets variables and then runs its arguments as a
    command.
    """

    path: str
    variables: Mapping[str, str]
    """The variables that the script sets to a value that differs from the image's environment."""


def entry_script(loader: Loader, entrypoint: tuple[str, ...]) -> EntryScript | None:
    """Return the entry point script that sets variables before it runs its arguments as a command, or None.

    ``apptainer exec`` starts a command without the entry point, so the command runs without the script's
    variables.
    """
    words = entrypoint[1:] if entrypoint and _SHELL.match(posixpath.basename(entrypoint[0])) else entrypoint
    path = _find(loader, words[0], StartedProgram(environment=dict(loader.environment))) if words else None
    text = path and files.text(loader.tree, path, _MOST_TEXT)
    if not path or not text or not _HANDS_ON.search(text):
        return None
    exports = read_wrapper(loader.tree, loader.environment, path, text, [])[0]
    environment = loader.environment
    changed = {
        name: value
        for name, value in _merge_variables(environment, exports).items()
        if environment.get(name) != value
    }
    return EntryScript(path, changed) if changed else None


def _without_env(words: list[str], program: StartedProgram) -> tuple[list[str], StartedProgram]:
    """Return the command that ``env`` starts, and ``program`` with the changes that ``env`` makes to its
    variables. Return both arguments unchanged if the command is not ``env``.
    """
    if not words or posixpath.basename(words[0]) != "env":
        return words, program
    environment, rest, clears = dict(program.environment), words[1:], program.clears
    while rest and (rest[0][:1] == "-" or _ASSIGNED.match(rest[0])):
        if assigned := _ASSIGNED.match(rest[0]):
            environment[assigned[1]] = assigned[2]
        elif rest[0] in _CLEARING:
            environment, clears = {}, (program.chain or ("env",))[-1]
        elif unset := _UNSET.fullmatch(rest[0]):
            rest = rest if unset["name"] else rest[1:]  # the variable's name may be the next word
            environment.pop(unset["name"] or "".join(rest[:1]), None)
        elif rest[0] in {"-C", "--chdir"}:
            rest = rest[1:]
        elif not _OF_ENV.match(rest[0]):
            break  # toolkit does not know this option, so the program stays unknown
        rest = rest[1:]
    return rest, replace(program, environment=environment, clears=clears)


def _find(loader: Loader, word: str, program: StartedProgram) -> str | None:
    """Return the path of the program ``word`` in the image, or None if the image lacks the program."""
    if "/" in word:
        return word if word.startswith("/") and files.is_file(loader.tree, word) else None
    return Loader(loader.tree, dict(program.environment)).program(word)


def _first_line(head: bytes) -> list[str] | None:
    if not head.startswith(b"#!"):
        return None
    return head[2:].partition(b"\n")[0].decode("utf-8", "replace").split() or None


def _after_login(loader: Loader, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of a login shell: Debian's /etc/profile sets a new PATH for users except root."""
    profile = files.text(loader.tree, "/etc/profile", _MOST_TEXT) or ""
    found = _PROFILE_PATH.search(profile)
    return {**environment, **({"PATH": found[1]} if found else {})}


def _after_bash_env(loader: Loader, program: StartedProgram) -> StartedProgram:
    """Return ``program`` with the variables from the file in BASH_ENV, which bash reads before it runs a
    script (bash(1), INVOCATION).
    """
    path = program.environment.get("BASH_ENV", "")
    text = files.text(loader.tree, path, _MOST_TEXT) if path.startswith("/") else None
    if text is None:
        return program
    exports = read_wrapper(loader.tree, program.environment, path, text, [])[0]
    return replace(program, environment=_merge_variables(program.environment, exports))


def _of_loader(words: list[str], program: StartedProgram) -> tuple[list[str], StartedProgram]:
    """Return the command that ld.so starts, and ``program`` with LD_LIBRARY_PATH set to the value of
    ``--library-path``.
    """
    environment, rest = dict(program.environment), words[1:]
    while len(rest) > 1 and rest[0].startswith("--"):
        option, equals, value = rest[0].partition("=")
        if not equals and option in _LOADER_VALUES:
            value = rest.pop(1)
        if option == "--library-path":
            environment["LD_LIBRARY_PATH"] = value
        rest = rest[1:]
    return rest, replace(program, environment=environment)


def _of_binary(
    loader: Loader, words: list[str], program: StartedProgram, script: str | None
) -> StartedProgram:
    """Return ``program``. If the binary is a Python interpreter, add the modules that the Python script
    imports; ``script`` is the text of the user's script.
    """
    if not _PYTHON.match(posixpath.basename(words[0])):
        return program
    text = script
    for number, word in enumerate(words[1:], start=1):
        if word == "-c":
            text = words[number + 1] if number + 1 < len(words) else ""
        elif word == "-m":
            module = (words[number + 1] if number + 1 < len(words) else "").partition(".")[0]
            return replace(program, python=True, modules=frozenset({module}) & _MPI_MODULES or None)
        elif not word.startswith("-") and words[number - 1] not in _WITH_VALUE:
            own = files.text(loader.tree, word, _MOST_TEXT) if word.startswith("/") else None
            text = own if own is not None else script
        else:
            continue
        break
    nodes = _nodes(text)
    filters = next((w for w in words[1:] if not w.startswith("-")), "") if _filters(nodes or []) else ""
    return replace(program, python=True, modules=_imported_modules(nodes), filters=filters)


def _nodes(text: str | None) -> list[ast.AST] | None:
    """Return the syntax tree nodes of a Python script, or None if the text is unknown or invalid."""
    try:
        return None if text is None else list(ast.walk(ast.parse(text)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _filters(nodes: list[ast.AST]) -> bool:
    """Return whether a Python script passes only some of its environment variables to the program that
    replaces it.
    """
    chosen = {
        target.id
        for node in nodes
        if isinstance(node, ast.Assign) and _is_choice(node.value)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    given = (
        node.args[-1]
        for node in nodes
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in _STARTS_OTHER
        and node.args
    )
    return any(_is_choice(one) or (isinstance(one, ast.Name) and one.id in chosen) for one in given)


def _is_choice(node: ast.expr) -> bool:
    return isinstance(node, ast.DictComp) and any(part.ifs for part in node.generators)


def _imported_modules(nodes: list[ast.AST] | None) -> frozenset[str] | None:
    """Return the top-level modules that a script imports, or None if the script is unknown."""
    if nodes is None:
        return None
    names = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    names += [node.module or "" for node in nodes if isinstance(node, ast.ImportFrom) and not node.level]
    return frozenset(name.partition(".")[0] for name in names)


def _of_shell(
    loader: Loader, words: list[str], program: StartedProgram
) -> StartedProgram | tuple[list[str], StartedProgram]:
    """Return the command that a shell starts last, and the program with the variables that the shell sets
    before this command. If toolkit cannot determine the command, return ``program`` with a ``reason``.

    ``words`` is the command line of the shell, for example ``sh script.sh x`` or ``sh -c 'a; b'``.
    """
    inline = next((n for n, word in enumerate(words[1:], start=1) if _INLINE.match(word)), None)
    if inline is not None:
        path, text, rest = words[0], "".join(words[inline + 1 : inline + 2]), words[inline + 3 :]
    else:
        path, rest = next(
            ((w, words[n + 1 :]) for n, w in enumerate(words) if n and w[:1] not in {"-", ""}), ("", [])
        )
        text = (files.text(loader.tree, path, _MOST_TEXT) if path.startswith("/") else None) or ""
        program = replace(program, path=path, chain=tuple(dict.fromkeys((*program.chain, path))))
    exports, started = read_wrapper(loader.tree, program.environment, path, text, rest)
    if started is None:
        return replace(
            program,
            reason=f"{path or words[0]}: the program that this script starts depends on conditions or on "
            "input",
        )
    environment = _merge_variables(program.environment, exports)
    unknown = {**program.undecided, **exports.undecided}
    return started, replace(program, environment=environment, undecided=unknown)


def _merge_variables(earlier: Mapping[str, str], shell: Environment) -> dict[str, str]:
    return {
        **earlier,
        **{name: value for name, value in shell.values.items() if name not in shell.undecided},
    }


def sites_of(loader: Loader, program: StartedProgram, sites: tuple[str, ...]) -> tuple[str, ...]:
    """Return the folders in which a program's Python searches for packages, in the order of the search;
    ``sites`` are the package folders of the image.
    """
    prefix = posixpath.dirname(posixpath.dirname(program.path))
    own = [site for site in sites if site.startswith(f"{prefix}/lib")]
    if prefix == "/usr":
        own += [site for site in sites if site.startswith("/usr/local/lib/python") and site not in own]
    entries = [p for p in program.environment.get("PYTHONPATH", "").split(":") if p.startswith("/")]
    return tuple(dict.fromkeys((*entries, *(own or _base_sites(loader, prefix, sites)))))


def _base_sites(loader: Loader, prefix: str, sites: tuple[str, ...]) -> Iterator[str]:
    """Yield the package folders of the Python installation that a virtual environment links to."""
    real = loader.real_path(f"{prefix}/bin/python3") or ""
    base = posixpath.dirname(posixpath.dirname(real))
    yield from (site for site in sites if base and site.startswith(f"{base}/lib"))


def needs_mpi_module(program: StartedProgram, module: str) -> bool:
    """Return whether a Python program may import ``module``; true if toolkit does not know the imports."""
    return program.modules is None or module in program.modules
