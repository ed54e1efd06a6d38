"""Change rows, rules and templates at random, and check that the unit tests fail: python -m tests.mutations.

The program makes one edit at a time in the working tree. It runs the tests that the edit affects until one
fails, and undoes the edit. It prints the edits for which no test fails, and then exits with status 1.

The program does not change three kinds of values, because no test of toolkit's behaviour can notice the edit:

- texts that toolkit only prints, such as ``title``, ``fix``, ``means`` and ``note``
- texts that toolkit does not read, such as ``source``, and samples, which only tests read
- the bounds of a long range in a pattern, such as ``.{0,80}``, because a slightly different range
  finds the same lines of real programs
"""

import argparse
import ast
import random
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import grimp

from tests.changed import ROOT, reach

_PROSE = re.compile(r"(sample|source|title|why|because|fix|means|note|evidence|todo) = |#")
_KEY = re.compile(r"[\w.\"+:,-]+|\s+\{ \w+")
# A range such as {0,80}, whose last bound has two or more digits, or else a single digit.
_DIGIT = re.compile(r"(?P<range>\{\d+,\d{2,}\})|\d")
_SWAPS = (
    (" == ", " != "),
    (" != ", " == "),
    (" <= ", " > "),
    (" >= ", " < "),
    (" < ", " >= "),
    (" > ", " <= "),
    (" is not None", " is None"),
    (" is None", " is not None"),
    (" not in ", " in "),
    (" in ", " not in "),
    ("if not ", "if "),
    (" and ", " or "),
    (" or ", " and "),
    ("True", "False"),
    ("False", "True"),
)
# The tests to run first, because they fail soonest.
_FIRST = {
    "recipes": "tests/unit/knowledge",
    "toolkit": "tests/unit/engine/rules",
    "slurm": "tests/unit/launch",
}

_PYTEST = (sys.executable, "-m", "pytest", *["-q", "-x", "-n", "auto", "--dist", "worksteal", "--no-header"])


@dataclass(frozen=True, slots=True)
class Edit:
    """One line of a file before and after the edit; if ``after`` is empty, the edit blanks the line."""

    file: str
    number: int
    before: str
    after: str


def rows(file: Path) -> Iterator[Edit]:
    """Yield edits that replace part of a value in a TOML file, such as a word, a digit, or true by false."""
    for number, line in enumerate(file.read_text().splitlines()):
        key, equals, value = line.partition(" = ")
        if not equals or _PROSE.match(line) or not _KEY.fullmatch(key):
            continue
        if key == "pattern":
            changed = re.sub(r"[A-Za-z]{4}", "zzzz", value, count=1)
        elif value in {"true", "false"}:
            changed = "false" if value == "true" else "true"
        else:
            changed = next_digit(value)
        if changed != value:
            yield Edit(_name(file), number, line, f"{key} = {changed}")


def next_digit(value: str) -> str:
    """Return a value with the next digit in place of its first digit; skip long ranges such as ``{0,80}``."""
    for found in _DIGIT.finditer(value):
        if not found["range"]:
            return f"{value[: found.start()]}{(int(found[0]) + 1) % 10}{value[found.end() :]}"
    return value


def rules(file: Path) -> Iterator[Edit]:
    text = file.read_text()
    prose = _of_long_texts(text)
    for number, line in enumerate(text.splitlines()):
        if (
            number + 1 in prose
            or '"' in line
            or line.lstrip().startswith(("#", "from ", "import ", "for ", "def "))
        ):
            continue
        for word, other in _SWAPS:
            changed = line.replace(word, other, 1)
            if changed != line and _is_python(text, number, changed):
                yield Edit(_name(file), number, line, changed)


def _is_python(text: str, number: int, changed: str) -> bool:
    lines = text.splitlines()
    lines[number] = changed
    try:
        ast.parse("\n".join(lines))
    except SyntaxError:
        return False
    return True


def _of_long_texts(text: str) -> set[int]:
    """Return the numbers of all lines inside multi-line strings, such as docstrings."""
    constants = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Constant)]
    long = [node for node in constants if node.end_lineno and node.end_lineno > node.lineno]
    return {number for node in long for number in range(node.lineno, (node.end_lineno or 0) + 1)}


def templates(file: Path) -> Iterator[Edit]:
    for number, line in enumerate(file.read_text().splitlines()):
        if line.strip() and not line.lstrip().startswith(("#", "{#", "{%")):
            yield Edit(_name(file), number, line, "")


def edits() -> dict[str, list[Edit]]:
    """Return all possible edits of the project, by the kinds ``row``, ``rule`` and ``template``."""
    found: dict[str, list[Edit]] = {"row": [], "rule": [], "template": []}
    for file in sorted((ROOT / "recipes" / "knowledge").glob("*.toml")):
        if file.name not in {"examples.toml", "licences.toml"}:
            found["row"] += rows(file)
    for file in sorted((ROOT / "toolkit" / "engine" / "rules").glob("*.py")):
        found["rule"] += rules(file)
    for file in sorted(ROOT.glob("slurm/**/*.j2")):
        found["template"] += templates(file)
    return found


def noticed(edit: Edit, graph: grimp.ImportGraph) -> str:
    """Make an edit, run the tests that it affects, and undo it; return a test that fails, or nothing.

    A test that also fails without the edit does not count.
    """
    first = _FIRST[edit.file.partition("/")[0]]
    others = [test for test in reach([edit.file], graph).unit if not test.startswith(first)]
    broken: list[str] = []
    for tests in ([first], others):
        while failed := _failed(tests, broken, edit):
            if not _failed([failed], []):
                return failed
            broken.append(failed)
    return ""


def _failed(tests: list[str], broken: list[str], edit: Edit | None = None) -> str:
    words = [*_PYTEST, *tests, *(f"--deselect={test}" for test in broken)]
    with _edited(edit):
        done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
    # With status 5, pytest found no test.
    if done.returncode in {0, 5}:
        return ""
    found = re.search(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.MULTILINE)
    return found[1] if found else tests[0]


@contextmanager
def _edited(edit: Edit | None) -> Iterator[None]:
    if edit is None:
        yield
        return
    file = ROOT / edit.file
    whole = file.read_text()
    lines = whole.splitlines()
    lines[edit.number] = edit.after
    try:
        file.write_text("\n".join(lines) + "\n")
        yield
    finally:
        file.write_text(whole)


def _name(file: Path) -> str:
    return str(file.relative_to(ROOT))


def main() -> int:
    """Make ``--count`` edits, equally many of each kind; return 1 if the tests miss one or more of them."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--count", type=int, default=30)
    options.add_argument("--seed", type=int, default=1)
    chosen = options.parse_args()
    chance = random.Random(chosen.seed)
    graph = grimp.build_graph("toolkit", "tests", cache_dir=None)
    kinds = edits()
    missed = 0
    for turn in range(chosen.count):
        kind = list(kinds)[turn % len(kinds)]
        edit = chance.choice(kinds[kind])
        test = noticed(edit, graph)
        missed += not test
        print(f"{kind} {edit.file}:{edit.number + 1}: {edit.before.strip()!r} -> {edit.after.strip()!r}")
        print(f"    {test[:160] or 'NOT NOTICED'}", flush=True)
    print(f"{chosen.count - missed} of {chosen.count} edits were noticed")
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
