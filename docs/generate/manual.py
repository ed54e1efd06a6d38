"""Make ``share``, which a wheel installs: a manual page for each command, and completion for three shells."""

import re

import click
from click.testing import CliRunner
from click_man.man import ManPage

from docs.generate.changelog import CHANGELOG, newest_date
from docs.generate.commands import Block, below, blocks, contexts, exit_codes, options, summary
from toolkit import __version__
from toolkit.cli.completion import command as completion

_COMPLETIONS = {
    "bash": "bash-completion/completions/toolkit",
    "zsh": "zsh/site-functions/_toolkit",
    "fish": "fish/vendor_completions.d/toolkit.fish",
}


def files() -> dict[str, str]:
    """Return the text of every file below ``share``."""
    made = {f"man/man1/{ctx.command_path.replace(' ', '-')}.1": manual_page(ctx) for ctx in contexts()}
    return made | {path: _completion(shell) for shell, path in _COMPLETIONS.items()}


def manual_page(ctx: click.Context) -> str:
    """Return the manual page of a command; its title is the name of its file: ``toolkit-image-build``."""
    name = ctx.command_path.replace(" ", "-")
    page = ManPage(name)
    page.version = f"toolkit {__version__}"
    page.date = newest_date(
        CHANGELOG.read_text()
    )  # without today's date: the same commands give the same pages
    page.short_help = _escaped(summary(ctx))
    page.synopsis = " ".join(ctx.command.collect_usage_pieces(ctx))
    page.description = "\n".join(_roff(block) for block in blocks(ctx))
    page.options = [(option, _escaped(text) or r"\&") for option, text in options(ctx)]
    page.commands = [(inner.info_name, _escaped(summary(inner))) for inner in below(ctx)]
    typed = (str(page) + _exit_status()).replace(f"\n.B {name}\n", f"\n.B {ctx.command_path}\n")
    whole = typed.replace(
        "\n", "\n.ad l\n.nh\n", 1
    )  # words are not hyphenated, because readers copy many of them
    return re.sub(r"^(\.SH .*\n)\.PP\n", r"\1", whole, flags=re.MULTILINE)


def _exit_status() -> str:
    listed = "".join(f".TP\n\\fB{code}\\fP\n{_escaped(text)}\n" for code, text in exit_codes())
    return f".SH EXIT STATUS\n{listed}"


def _roff(block: Block) -> str:
    if block.kind == "text":
        return f".PP\n{_escaped(block.text)}"
    lines = f".RS 4\n.nf\n{_escaped(block.text)}\n.fi\n.RE"
    return f".PP\nFor example:\n{lines}" if block.kind == "examples" else f".sp\n{lines}"


def _escaped(text: str) -> str:
    """Return text escaped for roff: hyphens can be copied, and roff reads no line as a request."""
    shown = text.replace("\\", "\\e").replace("-", "\\-")
    return re.sub(r"^(?=[.'])", r"\\&", shown, flags=re.MULTILINE)


def _completion(shell: str) -> str:
    return CliRunner().invoke(completion, [shell]).stdout
