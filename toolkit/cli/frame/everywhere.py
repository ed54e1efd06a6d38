"""Options that may precede or follow a command: ``--verbose``, ``--quiet`` and ``--debug``."""

import click

_FLAGS = (
    (("-v", "--verbose"), "Show the output of every step"),
    (("-q", "--quiet"), "Show errors only"),
    (("--debug",), "Show a traceback for any error"),
)
NAMES = ("verbose", "quiet", "debug")


def flags(*, hidden: bool = False) -> list[click.Parameter]:
    """Return click's objects for ``--verbose``, ``--quiet`` and ``--debug``.

    If ``hidden`` is true, ``--help`` does not list these options.
    """
    return [
        click.Option(
            names,
            is_flag=True,
            expose_value=False,
            callback=_apply_option,
            is_eager=True,
            hidden=hidden,
            help=text,
        )
        for names, text in _FLAGS
    ]


def taking_flags(command: click.Command) -> click.Command:
    """Add ``--verbose``, ``--quiet`` and ``--debug`` to a command and its subcommands; return the command.

    The command's ``--help`` does not list the added options. A command that runs another program gets none of
    these options, because the other program may have options of the same name.
    """
    own = {name for param in command.params for name in (*param.opts, *param.secondary_opts)}
    if not any(isinstance(param, click.Argument) and _takes_a_program(param) for param in command.params):
        command.params += [flag for flag in flags(hidden=True) if not own & set(flag.opts)]
    for inner in getattr(command, "commands", {}).values():
        taking_flags(inner)
    return command


def _takes_a_program(argument: click.Argument) -> bool:
    return argument.nargs == -1 and argument.type is click.UNPROCESSED


def _apply_option(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value and param.name:
        ctx.ensure_object(dict)[param.name] = True
