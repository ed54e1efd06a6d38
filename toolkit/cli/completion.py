"""``toolkit completion``: print a shell completion script."""

import click
from click.shell_completion import get_completion_class

from toolkit.cli.frame.say import say_text
from toolkit.cli.main import cli


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> None:
    """Print the completion script for SHELL.

    \b
    Example:
      toolkit completion bash > ~/.local/share/bash-completion/completions/toolkit
    """
    kind = get_completion_class(shell)
    if kind is None:  # never true: click supports bash, zsh and fish
        raise click.UsageError(f"no completion for {shell}")
    say_text(kind(cli, {}, "toolkit", "_TOOLKIT_COMPLETE").source())
