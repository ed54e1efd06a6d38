"""Format a fix of ``toolkit doctor --fix``, as the text of the fix file and as a diff of the
launch command.
"""

import difflib
from collections.abc import Iterable

import msgspec

from toolkit.launch.jobscript.plan import launch_words
from toolkit.model.fix import Fix
from toolkit.model.job import JobSpec
from toolkit.model.prediction import Plan, Request
from toolkit.model.recipe import Recipe
from toolkit.render import quote_word
from toolkit.report.lines import Style, leave_unstyled
from toolkit.report.plain import join_lines
from toolkit.report.toml import Value, toml

MARK = "# Made by toolkit doctor --fix"
"""The start of each fix file. toolkit overwrites an existing file only if the file starts with this text."""

_STYLES = {"+": "good", "-": "bad", "@": "dim"}


def fix_text(fix: Fix, use: str) -> str:
    """Return the text of a fix file (changes to a launch); ``use`` is the command that applies the fix."""
    return f"{MARK}: changes to a launch. {_comment(use)}\n{toml(msgspec.to_builtins(fix))}"


def recipe_text(recipe: Recipe, use: str) -> str:
    """Return the text of a recipe file. ``use`` is the ``toolkit image build`` command that builds the
    recipe.
    """
    body = toml(recipe_fields(recipe))
    return f"{MARK}: a recipe for an image that fits the cluster. {_comment(use)}\n{body}"


def recipe_fields(recipe: Recipe) -> dict[str, Value]:
    """Return the fields of a recipe as a mapping that :func:`~toolkit.report.toml.toml` can write."""
    fields: dict[str, Value] = msgspec.to_builtins(recipe)
    if "horovod" not in recipe.want:
        del fields["horovod"]
    return fields


def launch_lines(plan: Plan, request: Request, runtime: str) -> list[str]:
    """Return the launch command of ``plan`` as lines with one option each, so that a diff shows each changed
    option.
    """
    spec = JobSpec(
        name="job",
        image="IMAGE",
        command=("COMMAND",),
        directory=".",
        nodes=request.nodes,
        ranks_per_node=request.ranks_per_node,
    )
    groups = launch_words(spec, plan, spec.command, runtime)
    return [line for group in groups for line in _folded([quote_word(word) for word in group])]


def difference(
    old_lines: Iterable[str], new_lines: Iterable[str], name: str, style: Style = leave_unstyled
) -> str:
    """Return a unified diff that shows how the fix file ``name`` changes the launch command from the lines
    ``old_lines`` to the lines ``new_lines``.
    """
    lines = difflib.unified_diff(
        list(old_lines), list(new_lines), f"without {name}", f"with {name}", lineterm="", n=100
    )
    return join_lines(style(line, _STYLES.get(line[:1], "")) for line in lines)


def _folded(words: list[str]) -> list[str]:
    """Return the words of a command as lines: first the program, then one line for each option and
    its value.
    """
    lines: list[str] = []
    current, rest = [words[0]], words[1:]
    for word in rest:
        # A word such as --nv=1 or A=1 already contains its value, so the next word starts a new line.
        assigned = "=" in current[0] and len(current) == 1
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
