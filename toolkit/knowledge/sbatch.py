"""Parse an ``#SBATCH`` line as sbatch does, so that toolkit can check the options in the line.

Source: slurm:src/sbatch/opt.c, functions ``get_argument`` and ``_set_options``; getopt_long(3).
"""

from collections.abc import Iterable

_COMPONENTS = ("hetjob", "packjob")
"""Words, in upper or lower case, at which sbatch starts another component of a heterogeneous job."""


def words(line: str) -> list[str]:
    """Split the text after ``#SBATCH`` as sbatch does.

    Blanks separate words, single and double quotes group characters, a backslash escapes the next character,
    and an unquoted ``#`` starts a comment.

    Raises:
        ValueError: if a quotation mark is not closed.
    """
    found: list[str] = []
    word, begun, quote, escaped = "", False, "", False
    for letter in line:
        if escaped:
            word, escaped, begun = word + letter, False, True
        elif letter == "\\":
            escaped = True
        elif quote:
            word, quote = (word, "") if letter == quote else (word + letter, quote)
        elif letter in "\"'":
            quote, begun = letter, True
        elif letter == "#":
            break
        elif letter.isspace():
            found += [word] * begun
            word, begun = "", False
        else:
            word, begun = word + letter, True
    if quote:
        raise ValueError(f"no closing {quote}")
    return found + [word] * begun


def is_one_option(line: str) -> bool:
    """Return whether sbatch reads the text after ``#SBATCH`` as exactly one option, with or without a value.

    The result is false if the line starts another component of a heterogeneous job.
    """
    try:
        found = words(line)
    except ValueError:
        return False
    if any(mark in line.lower() for mark in _COMPONENTS) or not found:
        return False
    name, *values = found
    if len(values) > ("=" not in name):
        return False
    return name.startswith("-") and not any(value.startswith("-") for value in values)


def reserved_name(line: str, names: Iterable[str]) -> str:
    """Return the entry of ``names`` that matches the option in a line, or an empty string if no entry does.

    getopt_long(3) accepts an abbreviated long option if the abbreviation is unique. This function
    also accepts an ambiguous abbreviation, because sbatch's options differ between releases.

    Args:
        line: the text after ``#SBATCH``, with one option.
        names: long options without dashes, and letters of short options.
    """
    name = (words(line) or [""])[0].partition("=")[0]
    if name.startswith("--"):
        return next((one for one in names if len(one) > 1 and one.startswith(name[2:])), "")
    return next((one for one in names if one == name[1:2]), "")
