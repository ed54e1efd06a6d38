"""The pages of the files that users write: recipe, site profile, job, fix."""

import re
from collections.abc import Mapping

import click
import msgspec

from docs.generate.commands import contexts
from docs.generate.fields import fields
from docs.generate.markdown import cell, table
from toolkit import data
from toolkit.knowledge.components import wantable_components
from toolkit.model.fix import Fix
from toolkit.model.jobfile import JobFile
from toolkit.model.recipe import Recipe
from toolkit.model.site import Site

_EXAMPLE = data.shipped_folder("slurm") / "sites" / "example.toml"

_RECIPE = f"""\
# Recipe

A recipe says what an image contains, as TOML: `recipes/*.toml`, or your own file for `toolkit image build
./my.toml`. See [how versions are chosen](../../solve.md) and [how each stack is built](../../recipes.md).

`want` names components: {", ".join(f"`{name}`" for name in wantable_components())}.
A recipe may name `openmpi` or `mpich`, but not both."""

_SITE = """\
# Site profile

A site profile describes a cluster and how to use it, as TOML: `~/.config/toolkit/sites/NAME.toml`. `toolkit
init` writes it, [sites](../../sites.md) explains it, and [the example](../../../slurm/sites/example.toml)
has a value for every key."""

_JOB = """\
# Job

A job file says what to run, as YAML: `toolkit launch job.yaml`. Every field except `trainer`, `arguments`
and `command` has an option of the same name. Fields with one value may also be in the table `[launch]` of
`~/.config/toolkit/config.toml` and `toolkit.toml`. [The job file](../../job-file.md) shows all fields, and
[which value takes precedence](../../job-file.md#where-a-value-is-from) if several sources set a field."""

_FIX = """\
# Fix

A fix file contains changes to a launch, as TOML. `toolkit doctor --fix` writes the file, and `toolkit launch
--fix` applies it. [Change a launch](../../fix.md) explains the fields."""


def pages() -> dict[str, str]:
    """Return a page for each kind of file."""
    options, usual = _options()
    site = {f"defaults.{name}": text for name, text in options.items()} | _comments(_EXAMPLE.read_text())
    made: dict[str, tuple[str, type[msgspec.Struct], Mapping[str, str], Mapping[str, str]]] = {
        "recipe": (_RECIPE, Recipe, {}, {}),
        "site": (_SITE, Site, site, {}),
        "job": (_JOB, JobFile, options, usual),
        "fix": (_FIX, Fix, {}, {}),
    }
    return {f"reference/files/{name}.md": _page(*of) for name, of in made.items()}


def _page(head: str, struct: type[msgspec.Struct], said: Mapping[str, str], usual: Mapping[str, str]) -> str:
    rows = [
        (f"`{f.name}`", f.holds, f.default or usual.get(f.name, ""), cell(f.meaning))
        for f in fields(struct, said)
    ]
    return f"{head}\n\n{table(('field', 'allowed values', 'default', 'meaning'), rows)}\n"


def _options() -> tuple[dict[str, str], dict[str, str]]:
    """Return the help of the options of ``toolkit launch`` for the fields of a job, and their defaults."""
    (launch,) = (ctx for ctx in contexts() if ctx.command_path == "toolkit launch")
    helps = {str(p.name): p.help for p in launch.command.params if isinstance(p, click.Option) and p.help}
    parts = {name: text.rstrip("]").partition("  [default: ") for name, text in helps.items()}
    usual = {name: f"`{default}`" for name, (_, _, default) in parts.items() if default}
    return {name: meaning for name, (meaning, _, _) in parts.items()}, usual


def _comments(text: str) -> dict[str, str]:
    """Return the comments above the keys and tables of a file."""
    found: dict[str, str] = {}
    above: list[str] = []
    table = ""
    for line in text.splitlines():
        if line.startswith("#"):
            above.append(line.removeprefix("#").strip())
            continue
        if named := re.match(r"\[+(?P<table>\w+)\]+|(?P<key>\w+) =", line):
            table = named["table"] or table
            name = named["table"] or ".".join(filter(None, (table, named["key"])))
            found |= {name: " ".join(above)} if above else {}
        above = []
    return found
