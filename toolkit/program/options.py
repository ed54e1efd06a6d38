"""Options of a command that starts the ranks of a node, by the variables of the same meaning; pure."""

from collections.abc import Iterator, Sequence

from toolkit.program.torch import OPTIONS


def variables_of_options(starter: str, words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield a variable and its value for each option of a starter; stop at the script that it starts.

    A value that the shell makes is left out.
    """
    if starter != "torchrun":
        return
    given = iter(words)
    for word in given:
        if not word.startswith("-"):
            return
        option, separator, value = word.lstrip("-").partition("=")
        known = OPTIONS.get(option.replace("_", "-"))
        if known is None:
            continue
        if known.flag:
            yield known.variable, "1"
            continue
        value = value if separator else next(given, "")
        if "$" not in value and "`" not in value:
            yield known.variable, value
