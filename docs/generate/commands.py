"""Read the commands of ``toolkit`` from click, and make the page of each command in the reference."""

import inspect
import re
import textwrap
from collections.abc import Iterator
from typing import Literal, NamedTuple, cast

import click

from docs.generate.markdown import cell, fence, plain, table
from toolkit.cli.main import cli
from toolkit.errors import BadInput, CheckFailed, Interrupted, Missing

_EXAMPLE = re.compile(r"(\x08\n)?Examples?:\s+(?P<commands>.*)", re.DOTALL)


class Block(NamedTuple):
    """A part of a help text: a paragraph to wrap, lines to keep unchanged, or example commands."""

    kind: Literal["text", "lines", "examples"]
    text: str


def contexts(ctx: click.Context | None = None) -> Iterator[click.Context]:
    """Yield a command (by default ``toolkit`` itself) and all its subcommands, in the order of the help."""
    top = ctx or _context(cli, "toolkit", None)
    yield top
    for inner in below(top):
        yield from contexts(inner)


def below(ctx: click.Context) -> list[click.Context]:
    """Return the commands of a group; empty for a command that is not a group."""
    group = ctx.command
    if not isinstance(group, click.Group):
        return []
    found = {name: cast("click.Command", group.get_command(ctx, name)) for name in group.list_commands(ctx)}
    return [_context(command, name, ctx) for name, command in found.items()]


def _context(command: click.Command, name: str, parent: click.Context | None) -> click.Context:
    return click.Context(command, info_name=name, parent=parent, **command.context_settings)


def summary(ctx: click.Context) -> str:
    """Return the first sentence of a command's help, without its full stop."""
    return ctx.command.get_short_help_str(limit=1000).removesuffix(".")


def usage(ctx: click.Context) -> str:
    """Return the usage line of the command."""
    return " ".join((ctx.command_path, *ctx.command.collect_usage_pieces(ctx)))


def blocks(ctx: click.Context) -> Iterator[Block]:
    """Yield the parts of a command's help text."""
    for paragraph in inspect.cleandoc(ctx.command.help or "").split("\n\n"):
        if example := _EXAMPLE.fullmatch(paragraph):
            lines = [line.strip() for line in example["commands"].splitlines()]
            yield Block("examples", "\n".join(lines))
        elif paragraph.startswith("\b\n"):
            yield Block("lines", textwrap.dedent(paragraph.removeprefix("\b\n")))
        else:
            yield Block("text", " ".join(paragraph.split()))


def options(ctx: click.Context) -> list[tuple[str, str]]:
    """Return the options of a command as its help shows them, with their effect."""
    given = (p for p in ctx.command.get_params(ctx) if isinstance(p, click.Option))
    records = (option.get_help_record(ctx) for option in given)
    return [(name, " ".join(text.split())) for name, text in filter(None, records)]


def exit_codes() -> list[tuple[int, str]]:
    """Return the exit codes that every command uses, and the meaning of each."""
    ends = (CheckFailed, BadInput, Missing, Interrupted)
    return [(0, "The command succeeded."), *((end.code, inspect.cleandoc(end.__doc__ or "")) for end in ends)]


def pages() -> dict[str, str]:
    """Return the pages of the command line: an index, and a page for each command with its subcommands."""
    top, *rest = contexts()
    sections: dict[str, list[str]] = {}
    for ctx in rest:
        sections.setdefault(_words(ctx)[1], []).append(_section(ctx))
    index = [
        _section(top),
        "## Commands",
        table(
            ("command", "what it does"),
            [
                (f"[`{ctx.command_path}`]({_words(ctx)[1]}.md{_anchor(ctx)})", cell(summary(ctx)))
                for ctx in rest
            ],
        ),
        "## Exit codes",
        table(("code", "meaning"), [(str(code), cell(text)) for code, text in exit_codes()]),
    ]
    made = {f"reference/cli/{name}.md": "\n\n".join(parts) + "\n" for name, parts in sections.items()}
    return {"reference/cli/index.md": "\n\n".join(index) + "\n", **made}


def _words(ctx: click.Context) -> list[str]:
    return ctx.command_path.split()


def _anchor(ctx: click.Context) -> str:
    """Return the anchor of a command's heading on its page; empty for the command at the top of the page."""
    words = _words(ctx)
    return "" if len(words) == 2 else f"#{'-'.join(words)}"


def _section(ctx: click.Context) -> str:
    depth = max(1, len(_words(ctx)) - 1)
    parts = [f"{'#' * depth} {ctx.command_path}", fence(usage(ctx), "text")]
    parts += [_markdown(block) for block in blocks(ctx)]
    rows = [(_option(name), cell(text)) for name, text in options(ctx)]
    parts.append(table(("option", "what it does"), rows))
    return "\n\n".join(parts)


def _option(name: str) -> str:
    """Return an option and each of its choices as code, so that a line may end between them."""
    option, _, choices = name.removesuffix("]").partition(" [")
    return " ".join(f"`{word}`" for word in (option, *filter(None, choices.split("|"))))


def _markdown(block: Block) -> str:
    if block.kind == "text":
        return plain(block.text)
    return fence(block.text, "sh")
