"""What a fix changes, for a person: the file, and a diff of what would be launched."""

import difflib
from collections.abc import Iterable

import msgspec

from toolkit.launch.jobscript.plan import launch_words
from toolkit.model.fix import Fix
from toolkit.model.job import JobSpec
from toolkit.model.prediction import Plan, Request
from toolkit.model.recipe import Recipe
from toolkit.render import quoted
from toolkit.report.lines import Style, unstyled
from toolkit.report.plain import joined
from toolkit.report.toml import Value, toml

MARK = "# Made by toolkit doctor --fix"
"""How a file begins that may be written again; with it gone, the file is a person's own."""

_STYLES = {"+": "good", "-": "bad", "@": "dim"}


def fix_text(fix: Fix, use: str) -> str:
    """Return the file of a fix; ``use`` is the command that takes it."""
    return f"{MARK}: what a launch takes over. {_comment(use)}\n{toml(msgspec.to_builtins(fix))}"


def recipe_text(recipe: Recipe, use: str) -> str:
    """Return a recipe as ``toolkit image build`` reads it."""
    body = toml(recipe_fields(recipe))
    return f"{MARK}: a recipe for an image that fits the cluster. {_comment(use)}\n{body}"


def recipe_fields(recipe: Recipe) -> dict[str, Value]:
    """Return a recipe's values as a person would write them: nothing of what it does not have."""
    fields: dict[str, Value] = msgspec.to_builtins(recipe)
    if "horovod" not in recipe.want:
        del fields["horovod"]
    return fields


def launch_lines(plan: Plan, request: Request, runtime: str) -> list[str]:
    """Return the launch line of a plan, a group of words a line, so that a diff shows what changes."""
    spec = JobSpec(
        name="job",
        image="IMAGE",
        command=("COMMAND",),
        directory=".",
        nodes=request.nodes,
        ranks_per_node=request.ranks_per_node,
    )
    groups = launch_words(spec, plan, spec.command, runtime)
    return [line for group in groups for line in _folded([quoted(word) for word in group])]


def difference(before: Iterable[str], after: Iterable[str], name: str, style: Style = unstyled) -> str:
    """Return a unified diff; ``name`` is the file that makes the difference."""
    lines = difflib.unified_diff(
        list(before), list(after), f"without {name}", f"with {name}", lineterm="", n=100
    )
    return joined(style(line, _STYLES.get(line[:1], "")) for line in lines)


def _folded(words: list[str]) -> list[str]:
    """Give the first words a line and each option behind it one of its own, with its value."""
    lines: list[str] = []
    current, rest = [words[0]], words[1:]
    for word in rest:
        assigned = "=" in current[0] and len(current) == 1  # an option or variable that has its value
        if word.startswith("-") or "=" in word:
            lines.append(" ".join(current))
            current = [f"    {word}"]
        elif assigned:
            lines.append(" ".join(current))
            current = [word]
        else:
            current.append(word)
    return [*lines, " ".join(current)]


def _comment(text: str) -> str:
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())
