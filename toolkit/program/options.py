"""Translate torchrun's options into variables with the same meaning."""

from collections.abc import Iterator, Sequence

from toolkit.program.torch import OPTIONS


def variables_of_options(starter: str, words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the variable and value of each torchrun option; stop at the script that torchrun starts.

    Values that the shell computes are left out.
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
