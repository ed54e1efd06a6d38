"""Damage bytes, texts and JSON at random; the same seed causes the same damage."""

import json
import random

_NUMBERS = (
    0,
    1,
    0x7F,
    0x80,
    0xFF,
    0x7FFF,
    0xFFFF,
    0x7FFFFFFF,
    0xFFFFFFFF,
    1 << 40,
    (1 << 63) - 1,
    (1 << 64) - 1,
)
_VALUES: tuple[object, ...] = (
    *(
        None,
        True,
        False,
        0,
        -1,
        1 << 62,
        10**400,
        1e308,
        0.5,
        "",
        "x",
        "\0",
        "\ud800",
        "9" * 5000,
        "a" * 100_000,
    ),
    *(
        [],
        {},
        [[]],
        {"": None},
        ["x"] * 2000,
        "../../etc/passwd",
        "$(reboot)",
        "\x1b[31m",
        "4.1.4",
        "pmix_v5",
    ),
)


def bytewise(data: bytes, chance: random.Random, other: bytes = b"") -> bytes:
    """Return ``data`` after one to four changes; ``other`` has bytes that a change may copy into ``data``."""
    out = bytearray(data)
    for _ in range(chance.choice((1, 1, 1, 2, 4))):
        chance.choice(_WAYS)(out, chance, other)
    return bytes(out)


def _cut(out: bytearray, chance: random.Random, other: bytes) -> None:
    del out[chance.randint(0, len(out)) :]


def _flip(out: bytearray, chance: random.Random, other: bytes) -> None:
    for _ in range(chance.choice((1, 1, 2, 8, 64))):
        if out:
            out[_place(out, chance)] = chance.randrange(256)


def _number(out: bytearray, chance: random.Random, other: bytes) -> None:
    width = chance.choice((2, 4, 8))
    at = _place(out, chance) & ~(width - 1)
    value = chance.choice(_NUMBERS) & ((1 << 8 * width) - 1)
    out[at : at + width] = value.to_bytes(width, "little")


def _fill(out: bytearray, chance: random.Random, other: bytes) -> None:
    at, count = _place(out, chance), chance.choice((1, 16, 512, 4096))
    count = min(count, len(out) - at)
    out[at : at + count] = bytes([chance.choice((0, 255, 0x20))]) * max(count, 0)


def _move(out: bytearray, chance: random.Random, other: bytes) -> None:
    at, to, count = _place(out, chance), _place(out, chance), chance.choice((4, 96, 512, 4096))
    piece = out[at : at + count]
    out[to : to + len(piece)] = piece


def _repeat(out: bytearray, chance: random.Random, other: bytes) -> None:
    at, count = _place(out, chance), chance.choice((1, 512, 2048))
    out[at:at] = bytes(out[at : at + count]) * chance.choice((1, 2, 50))


def _splice(out: bytearray, chance: random.Random, other: bytes) -> None:
    cut = chance.randint(0, len(out))
    out[cut:] = other[chance.randint(0, len(other)) :] if chance.random() < 0.5 else other[cut:]


def _insert(out: bytearray, chance: random.Random, other: bytes) -> None:
    at = _place(out, chance)
    out[at:at] = chance.randbytes(chance.choice((1, 3, 100)))


def _place(out: bytearray, chance: random.Random) -> int:
    """Return a random position, more often near the start, where most formats have their headers."""
    last = max(len(out) - 1, 0)
    return min(
        chance.choice((chance.randint(0, 100), chance.randint(0, 1000), chance.randint(0, last))), last
    )


_WAYS = (_cut, _flip, _flip, _number, _number, _fill, _move, _repeat, _splice, _insert)


def tar_headers(data: bytes, chance: random.Random) -> bytes:
    """Return a tar with damaged fields in some headers, and with correct checksums."""
    out = bytearray(data)
    for at in range(0, len(out) - 511, 512):
        if out[at + 257 : at + 262] != b"ustar" or chance.random() > 0.3:
            continue
        field, width = chance.choice(((0, 100), (124, 12), (156, 1), (157, 100), (345, 155)))
        values = (
            *(
                b"../../../etc/passwd",
                b"/etc/passwd",
                b"a/" * 60,
                b"\xff" * width,
                b"",
                b".wh..wh..opq",
                b".wh.usr",
            ),
            *(
                b"77777777777",
                b"\x80" + b"\xff" * 11,
                b"1",
                b"2",
                b"x",
                b"L",
                b"g",
                b"S",
                b"5",
                b"usr",
                b"usr/lib",
            ),
        )
        out[at + field : at + field + width] = chance.choice(values)[:width].ljust(width, b"\0")
        out[at + 148 : at + 156] = b" " * 8
        out[at + 148 : at + 156] = f"{sum(out[at : at + 512]):06o}\0 ".encode()
    return bytes(out)


def jsonwise(data: bytes, chance: random.Random) -> bytes:
    """Return JSON with some values replaced by other types, removed, doubled, or nested very deeply."""
    value = json.loads(data)
    for _ in range(chance.choice((1, 2, 5))):
        value = _changed(value, chance, 0)
    try:
        text = json.dumps(value)
    except (RecursionError, ValueError):
        return data
    if chance.random() < 0.1:
        deep = chance.choice((50, 900, 5000, 200_000))
        text = text.replace("null", "[" * deep + "]" * deep, 1)
    return text.encode("utf-8", "surrogatepass")


def _changed(value: object, chance: random.Random, deep: int) -> object:
    if deep > 12 or chance.random() < 0.03 or not isinstance(value, dict | list) or not value:
        alike = [v for v in _VALUES if type(v) is type(value)]
        return chance.choice(alike if alike and chance.random() < 0.7 else _VALUES)
    if isinstance(value, list):
        at = chance.randrange(len(value))
        return [*value[:at], _changed(value[at], chance, deep + 1), *value[at + 1 :]]
    key = chance.choice(list(value))
    if chance.random() < 0.15:
        return {k: v for k, v in value.items() if k != key}
    if chance.random() < 0.1:
        return {**value, chance.choice(("", "x" * 5000, "\0", "schema", "mpi")): chance.choice(_VALUES)}
    return {**value, key: _changed(value[key], chance, deep + 1)}
