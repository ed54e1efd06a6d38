"""Find the variables that an image's scripts set when Apptainer starts a program.

toolkit parses the scripts and does not run them.
"""

import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from shlex import quote

from toolkit.image.files import tree as files
from toolkit.image.files.config import BEGINNING
from toolkit.image.files.tree import FileTree
from toolkit.image.loader.activation import conda_hook_root, read_activation
from toolkit.program.shellwords import LONGEST, UNTOLD, blocks, commands, expand

_MOST_TEXT = 1 << 16
_MOST_SCRIPTS = 20
_RUNTIME = frozenset(("01-base.sh", "94-appsbase.sh", "95-apps.sh", "99-base.sh", "99-runtimevars.sh"))
"""The scripts that Apptainer adds to every image, for example for Apptainer's option ``--app``
(apptainer:internal/pkg/build/sources/base_environment.go). toolkit does not evaluate
these scripts.
"""
DRIVER = "/.singularity.d/libs"
"""The folder where ``--nv`` and ``--rocm`` mount the host's GPU driver libraries."""
_EXPORTING = frozenset(("export", "declare", "typeset", "readonly", "local"))
_RUNNING = frozenset((".", "source", "eval", "module", "ml", "spack", "conda", "mamba", "micromamba"))
"""Commands that may set variables to values that depend on the machine."""
_SOURCING = frozenset((".", "source"))
_ASKING = frozenset(("-e", "-f", "-r", "-s"))
_FUNCTION = re.compile(r"^\s*(function\s|[\w:-]+\s*\(\s*\))", re.MULTILINE)
"""A pattern for the start of a shell function. toolkit does not evaluate scripts with functions, such as
conda.sh and Intel's setvars.sh."""
_LOOP = re.compile(
    r"^[ \t]*for (?P<name>\w+) in (?P<words>[^;\n]{1,400}?) *[;\n]\s*do\s+"
    r"(?:(?:if )?\[ -[efrs] \"?\$\{?(?P=name)\}?\"? \] *(?:&&|[;\n]\s*then)\s+)?"
    r"(?:\.|source) \"?\$\{?(?P=name)\}?\"?\s*(?:[;\n]\s*fi\s*)?[;\n]\s*done\b",
    re.MULTILINE,
)
"""A pattern for a loop that runs ``source FILE`` for each file, perhaps only if the file exists."""
_MOST_SOURCED = 10
_MOST_LOOPS = 5
_PATHS = ("PATH", "LD_LIBRARY_PATH")
_DEFAULT = re.compile(r'"?\$\{\w+:?-')
_REDIRECTION = re.compile(r"(?:\d?|&)(?:>>?|<)(?P<file>.*)\Z", re.DOTALL)
_ASSIGNED = re.compile(r"(?P<name>[A-Za-z_]\w*)(?P<more>\+?)=(?P<word>.*)\Z", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Environment:
    """The environment variables that the scripts of an image set.

    ``values`` has the known variables. ``undecided`` has a reason for each variable whose value is unknown or
    partly unknown.

    If toolkit knows only some folders of a list such as PATH, ``values`` has these folders.
    """

    values: dict[str, str]
    undecided: dict[str, str] = field(default_factory=dict)


def environment(tree: FileTree, variables: Mapping[str, str] | None = None) -> Environment:
    """Return the variables after the last script of an image. Apptainer runs the scripts in the order of the
    script names. ``variables`` are the variables before the first script.
    """
    shell = ImageShell(tree, {"PATH": BEGINNING, **(variables or {})})
    scripts = files.glob(tree, "/.singularity.d/env/[0-9]*.sh")
    own = (path for path in scripts if posixpath.basename(path) not in _RUNTIME)
    for script in islice(own, _MOST_SCRIPTS):
        shell.read(script, files.text(tree, script, _MOST_TEXT) or "")
    return shell.environment()


def driver_searched(tree: FileTree) -> bool:
    """Return whether a script of the image contains :data:`DRIVER`, so that ld.so searches this folder."""
    scripts = islice(files.glob(tree, "/.singularity.d/env/*.sh"), _MOST_SCRIPTS)
    return any(DRIVER in (files.text(tree, script, _MOST_TEXT) or "") for script in scripts)


def _without_redirections(words: list[str]) -> list[str]:
    """Return the words of a command without redirections such as ``> /dev/null``."""
    found, skipped = [], False
    for word in words:
        redirects = None if skipped else _REDIRECTION.match(word)
        if not skipped and redirects is None:
            found.append(word)
        skipped = redirects is not None and not redirects["file"]
    return found


class ImageShell:
    """A simulated POSIX shell, which evaluates assignments in scripts but does not run commands."""

    def __init__(self, tree: FileTree, variables: dict[str, str]) -> None:
        self.tree = tree
        self.values = {name: value.replace(UNTOLD, "") for name, value in variables.items()}
        # Apptainer's last script always exports LD_LIBRARY_PATH.
        self.exported = {*variables, *_PATHS}
        self.begun = False
        """Whether the image has set its own PATH in place of Apptainer's default PATH."""
        self.reasons: dict[str, str] = {}
        self.script = ""
        self.all = False
        self.sourced = 0
        self.conda = ""

    def read(self, script: str, text: str) -> bool:
        """Update the variables as a script would; return False if the script exits the shell (``exit``)."""
        self.script = script
        depth, rounds, sure = 0, 0, True
        for before, words in commands(self._without_loops(script, text)):
            rounds = max(0, rounds + (before == "(") - (before == ")"))
            deeper, command = blocks(_without_redirections(words))
            depth = max(0, depth + deeper)
            certain = not depth + rounds and (before not in {"&&", "||"} or (before == "&&" and sure))
            if certain and command[:1] in (["exit"], ["return"]):
                return command[0] == "return"
            if certain and command and self._activated(command):
                sure = True
                continue
            if (
                certain
                and command[:1]
                and command[0] in _SOURCING
                and (inner := self._sourced_script(command))
            ):
                sure = False
                if not self._read_in(*inner):
                    return False
                continue
            sure = self._command(command, certain=certain) and certain
        return True

    def _without_loops(self, script: str, text: str) -> str:
        """Replace each loop that sources files of the image by ``. FILE`` commands, and return the new text.
        An example of such a loop is ``for f in /opt/env/etc/*.sh; do . "$f"; done``.
        """
        loops = list(islice(_LOOP.finditer(text), _MOST_LOOPS))
        if not loops or self.sourced >= _MOST_SOURCED:
            return text
        before, parts, done = ImageShell(self.tree, dict(self.values)), list[str](), 0
        before.sourced = _MOST_SOURCED  # the shell `before` neither sources scripts nor follows loops
        for loop in loops:
            parts.append(text[done : loop.start()])
            before.read(script, parts[-1])
            patterns = [expand(word, before.values.get) for word in loop["words"].split()]
            known = not any(UNTOLD in one or not one.startswith("/") for one in patterns)
            found = (path for one in patterns if known for path in files.glob(self.tree, one))
            paths = list(islice(found, _MOST_SOURCED + 1))
            follows = known and len(paths) <= _MOST_SOURCED
            parts.append("".join(f". {quote(path)}\n" for path in paths) if follows else loop[0])
            done = loop.end()
        return "".join([*parts, text[done:]])

    def _activated(self, command: list[str]) -> bool:
        """If the command activates an environment, update the variables and return True; otherwise return
        False.
        """
        if command[0] not in _RUNNING:
            return False
        words = [expand(word, self.values.get) for word in command]
        if root := conda_hook_root(self.tree, words):
            self.conda = root
            self._before("PATH", f"{root}/condabin")
            return True
        activation = read_activation(self.tree, words, self.conda)
        if activation is None:
            return False
        self._before("PATH", f"{activation.prefix}/bin")
        self._set(activation.variable, activation.prefix, "", certain=True)
        self.exported.add(activation.variable)
        for name, folder in activation.search_folders:
            self._before(name, folder)
            self.exported.add(name)
        for script in activation.scripts[:_MOST_SCRIPTS]:
            if inner := self._sourced_script([".", script]):
                self._read_in(*inner)
            elif "PATH=" in (files.text(self.tree, script, _MOST_TEXT) or "PATH="):
                self._run(f". {script}")
        return True

    def _before(self, name: str, folder: str) -> None:
        self._set(name, f"{folder}:{self.values.get(name, '')}", folder, certain=True)

    def _sourced_script(self, words: list[str]) -> tuple[str, str] | None:
        """Return the path and text of the script that a command sources.

        The result is None if toolkit cannot evaluate the script, or the command sources no script.
        """
        path = expand(words[1], self.values.get) if len(words) == 2 else ""
        if not path.startswith("/") or UNTOLD in path or self.sourced >= _MOST_SOURCED:
            return None
        text = files.text(self.tree, path, _MOST_TEXT + 1)
        if text is None or len(text) > _MOST_TEXT or _FUNCTION.search(text):
            return None
        return path, text

    def _read_in(self, path: str, text: str) -> bool:
        outer, self.sourced = self.script, self.sourced + 1
        goes_on = self.read(path, text)
        self.script = outer
        return goes_on

    def environment(self) -> Environment:
        values: dict[str, str] = {}
        undecided: dict[str, str] = {}
        for name in sorted(self.exported & self.values.keys()):
            written = self.values[name].split(":")
            parts = [part for part in written if UNTOLD not in part]
            if len(parts) < len(written):
                undecided[name] = self.reasons[name]
            if len(parts) == len(written) or any(parts):
                values[name] = ":".join(parts)
        return Environment({"PATH": BEGINNING, **values}, undecided)

    def _command(self, words: list[str], *, certain: bool) -> bool:
        """Update the variables as a command would; return whether the command certainly succeeds."""
        place = next((n for n, word in enumerate(words) if not _ASSIGNED.match(word)), len(words))
        if place == len(words):
            self._assign(words, certain=certain, export=self.all)
            return True
        name, rest = words[place], words[place + 1 :]
        if name in _EXPORTING:
            self._assign([w for w in rest if not w.startswith("-")], certain=certain, export=True)
        elif name == "unset":
            self._unset(rest, certain=certain)
        elif name == "set":
            self.all = self.all or "-a" in rest or "allexport" in rest
        elif (name in _RUNNING or name[0] in "$`") and not self._nowhere(name, rest):
            self._run(" ".join((name, *rest)))
        return name in _EXPORTING or (name == "[" and self._tests_existing(rest))

    def _tests_existing(self, words: list[str]) -> bool:
        """Return whether the words are a ``[`` test for a file that exists in the image."""
        path = expand(words[1], self.values.get) if len(words) == 3 and words[0] in _ASKING else ""
        return path.startswith("/") and UNTOLD not in path and files.is_file(self.tree, path)

    def _assign(self, words: list[str], *, certain: bool, export: bool) -> None:
        for word in words:
            match = _ASSIGNED.match(word)
            name = match["name"] if match else word
            if match:
                value = expand(match["word"], partial(self._value, name, match["word"]))
                if match["more"]:
                    value = f"{self.values.get(name, '')}{value}"
                self._set(name, value, word, certain=certain)
            if export:
                self.exported.add(name)

    def _set(self, name: str, value: str, word: str, *, certain: bool) -> None:
        value = value[:LONGEST]
        if not certain:
            self.reasons[name] = f"{self.script} sets {name} only under a condition"
            value = f"{value}:{UNTOLD}"
        elif UNTOLD in value:
            self.reasons.setdefault(
                name, (f"{self.script} sets {name} to a value that is known only at run time: {word[:200]}")
            )
        else:
            self.reasons.pop(name, None)
        self.values[name] = value
        self.begun = self.begun or name == "PATH"

    def _value(self, text: str, word: str, name: str) -> str | None:
        """Return the value of a variable, or None if the user's environment may set the variable.

        toolkit assumes in two cases that an unset variable is empty: the variable's name ends with PATH, or
        a script adds text to the variable's own value, as in ``X=/opt:$X``.
        """
        if name == text == "PATH" and not self.begun and _DEFAULT.match(word):
            return None
        if name in self.values:
            return self.values[name]
        return "" if (name == text or name.endswith("PATH")) and not _DEFAULT.match(word) else None

    def _unset(self, names: list[str], *, certain: bool) -> None:
        for name in names:
            if certain:
                self.values.pop(name, None)
            elif name in self.values:
                self._set(name, self.values[name], "", certain=False)

    def _nowhere(self, name: str, arguments: list[str]) -> bool:
        """Return whether the command sources a script that the image does not contain."""
        path = expand(arguments[0], self.values.get) if name in {".", "source"} and arguments else ""
        return path.startswith("/") and UNTOLD not in path and not files.is_file(self.tree, path)

    def _run(self, command: str) -> None:
        for name in _PATHS:
            self.reasons[name] = f"{self.script} runs {command[:200]}, whose effect is known only at run time"
            self.values[name] = f"{self.values.get(name, '')}:{UNTOLD}"
