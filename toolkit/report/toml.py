"""Write values as TOML files that users can read and edit."""

import json
import re
from collections.abc import Iterator, Mapping

Value = str | int | bool | tuple[str, ...] | list[str] | list[Mapping[str, "Value"]] | Mapping[str, "Value"]

_PLAIN = re.compile(r"[ !#-\[\]-~\n]*", re.ASCII)
"""A pattern for text that needs no escapes between triple quotation marks."""


def toml(value: Mapping[str, Value]) -> str:
    """Return a mapping as TOML text, including inner tables and lists of tables. The TOML text omits keys
    with empty values.
    """
    return "\n".join(_table("", value)).strip() + "\n"


def _table(name: str, value: Mapping[str, Value], *, headed: bool = False) -> Iterator[str]:
    values = {key: item for key, item in value.items() if item not in (None, "", (), []) and item != {}}
    tables = {key: item for key, item in values.items() if isinstance(item, Mapping)}
    rows = {
        key: item for key, item in values.items() if isinstance(item, list) and isinstance(item[0], Mapping)
    }
    if name and not headed and (len(tables) + len(rows) < len(values) or not values):
        yield f"\n[{name}]"
    for key, plain in values.items():
        if key not in tables and key not in rows:
            yield f"{_key(key)} = {_plain(plain)}"
    for key, table in tables.items():
        yield from _table(f"{name}.{_key(key)}" if name else _key(key), table)
    for key, several in rows.items():
        path = f"{name}.{_key(key)}" if name else _key(key)
        for row in several:
            yield f"\n[[{path}]]"
            yield from _table(path, row, headed=True)


def _key(key: str) -> str:
    return key if key.replace("_", "").replace("-", "").isalnum() and key.isascii() else _basic(key)


def _plain(item: object) -> str:
    if isinstance(item, bool):
        return "true" if item else "false"
    if isinstance(item, tuple | list):
        words = [_plain(part) for part in item]
        if len(line := f"[{', '.join(words)}]") <= 100 or len(words) < 2:
            return line
        return "[\n" + "".join(f"    {word},\n" for word in words) + "]"
    return str(item) if isinstance(item, int) else _text(str(item))


def _text(text: str) -> str:
    if text.endswith("\n") and _PLAIN.fullmatch(text):
        return f'"""\n{text}"""'
    return _basic(text)


def _basic(text: str) -> str:
    # JSON's escapes are valid in a TOML basic string. TOML also requires an escape for DEL.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
