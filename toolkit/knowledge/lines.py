"""Find the line of a field in a TOML file, because Python's TOML parser does not report line numbers."""

import re

_HEADER = re.compile(r"^\s*(?P<open>\[\[?)\s*(?P<name>[^\[\]]+?)\s*\]\]?\s*(?:#.*)?$")
_KEY = re.compile(r"^\s*(?P<key>[A-Za-z0-9_\-.\"' ]+?)\s*=")
_LAST = re.compile(r"\[[^\]]*\]$")


def line_of(text: str, path: str) -> int:
    """Return the line number, counted from 1, of the field with the dotted ``path``.

    If the field does not exist, return the line of the innermost existing table on the field's path. If no
    table on the path exists, return 1.

    The path ``base[1].name`` is the field ``name`` in the second table ``[[base]]``.
    """
    wanted = path
    places = _places(text)
    while wanted:
        if wanted in places:
            return places[wanted]
        shorter = _LAST.sub("", wanted)
        wanted = shorter if shorter != wanted else wanted.rpartition(".")[0]
    return 1


def _places(text: str) -> dict[str, int]:
    """Return the line number of the first occurrence of every table and key, by dotted path."""
    places: dict[str, int] = {}
    table = ""
    count: dict[str, int] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if header := _HEADER.match(line):
            table = _plain(header["name"])
            places.setdefault(table, number)
            if header["open"] == "[[":
                count[table] = count.get(table, -1) + 1
                table = f"{table}[{count[table]}]"
                places[table] = number
        elif key := _KEY.match(line):
            places.setdefault(f"{table}.{_plain(key['key'])}".lstrip("."), number)
    return places


def _plain(name: str) -> str:
    return ".".join(part.strip().strip("\"'") for part in name.split("."))
