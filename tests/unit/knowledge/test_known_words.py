"""Test words with digits, sizes and yes/no keys in the knowledge tables for typing errors."""

import importlib
import inspect
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from tests.unit.knowledge.rows import FILES, text

ROOT = Path(__file__).parents[3]
MODULES = ROOT / "toolkit" / "knowledge"
EXAMPLES = {"examples", "licences"}
NAMES = [file.stem for file in FILES if file.stem not in EXAMPLES]
WORD = re.compile(r"(?<![\w.])[A-Za-z_]\w*(?:\.so\.\d+)?")
PROSE = re.compile(r"\s*(sample|source|title|why|because|fix|evidence|general|name|origin|means|note|#)")
ALONE = {
    "MV2_COMM_WORLD_RANK",
    "PSM3_DEVICES",
    "bc10d",
    "cxgb4_",
    "dc_mlx5",
    "disable_v2_behavior",
    "el7",
    "hfi1",
    "petsc4py",
    "slepc4py",
    "to_int32",
    "to_int64",
    "ud_mlx5",
}
"""Words with a digit that occur only once in knowledge, code, sites and records."""


def corpus() -> Counter[str]:
    """Return how often each word with a digit occurs in knowledge, code, sites and records."""
    files = [
        *ROOT.glob("toolkit/**/*.py"),
        *ROOT.glob("slurm/**/*.toml"),
        *ROOT.glob("recipes/*.toml"),
        *ROOT.glob("tests/matrix/*.*"),
        *ROOT.glob("recipes/*.lock.json"),
    ]
    found: Counter[str] = Counter()
    for content in (*map(text, [file.stem for file in FILES]), *(file.read_text("utf-8") for file in files)):
        found.update(word for word in WORD.findall(content) if re.search(r"\d", word))
    return found


def values(name: str) -> Iterator[str]:
    """Yield the values in the lines of a file; skip prose, patterns and hashes."""
    for line in text(name).splitlines():
        if " = " in line and not PROSE.match(line) and "sha256" not in line and "pattern" not in line:
            yield line.partition(" = ")[2]


def test_a_word_with_a_digit_is_used_elsewhere():
    known = corpus()
    words = {
        word
        for name in NAMES
        for line in values(name)
        for word in WORD.findall(line)
        if re.search(r"\d", word)
    }
    assert len(words) > 80
    assert sorted({word for word in words if known[word] < 2} ^ ALONE) == []


def test_a_size_in_bytes_is_a_power_of_two_or_whole_gibibytes():
    sizes = [
        size
        for name in NAMES
        for line in values(name)
        for size in map(int, re.findall(r"(?<![\w.\"])\d{5,}$", line))
    ]
    assert len(sizes) >= 10
    assert [size for size in sizes if size & (size - 1) and size % (1 << 30)] == []


def defaults(name: str) -> dict[str, set[Any]]:
    """Return the defaults of each yes/no key in the structs into which toolkit reads a file."""
    module = importlib.import_module(f"toolkit.knowledge.{name}")
    found: dict[str, set[Any]] = {}
    for _, kind in inspect.getmembers(
        module, lambda one: isinstance(one, type) and issubclass(one, msgspec.Struct)
    ):
        for field in msgspec.structs.fields(kind):
            if field.type is bool or field.type == bool | None:
                found.setdefault(field.encode_name, set()).add(field.default)
    return found


def test_a_row_does_not_repeat_the_default_of_a_switch():
    repeated = []
    for name in (file.stem for file in MODULES.glob("*.py") if file.stem in {*NAMES} - {"usual"}):
        known = defaults(name)
        for line in text(name).splitlines():
            key, _, value = line.partition(" = ")
            if value in {"true", "false"} and known.get(key, set()) == {value == "true"}:
                repeated.append((name, line))
    assert repeated == []
