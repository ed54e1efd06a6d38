"""Find the fault class of a line of job output: the first row of ``faultlines.toml`` that matches the line
decides.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache

from toolkit.engine.logs.codes import deciding_code
from toolkit.engine.logs.logsearch import compile_line_pattern
from toolkit.engine.logs.logwords import WordFinder, required_words
from toolkit.knowledge.signatures import FaultLine, Role, fault_lines

_MANY = 200
"""toolkit tries all patterns on this number of distinct lines. For further lines, toolkit first searches for
the texts that the patterns require, and then tries only the patterns that may match.
"""


def classify(text: str) -> FaultLine | None:
    """Return the row of ``faultlines.toml`` that matches a line; ``None`` if the line is harmless or no row
    matches.

    The function ignores leading blanks, because workflow managers indent the output of a program.
    """
    row = _row_of(text.lstrip())
    return None if row is None or row.role == "harmless" else row


def classify_warning(text: str) -> FaultLine | None:
    """Return the first row of ``faultlines.toml`` that matches a warning; ``None`` if no row matches.

    The function ignores the rows for harmless lines, because these rows match most warnings.
    """
    found = (part.row_of(text) for part in likely_parts(text) if part.row.role != "harmless")
    return next((row for row in found if row), None)


def is_harmless(text: str) -> bool:
    """Return whether the first row of ``faultlines.toml`` that matches a line says that the line is
    harmless.
    """
    row = _row_of(text.lstrip())
    return row is not None and row.role == "harmless"


@lru_cache(maxsize=8192)
def _row_of(text: str) -> FaultLine | None:
    parts = _parts() if _row_of.cache_info().misses < _MANY else likely_parts(text)
    return next((found for part in parts if (found := part.row_of(text))), None)


@dataclass(frozen=True, slots=True)
class RowPart:
    """One pattern of a row of ``faultlines.toml``, or the row's error codes if ``pattern`` is empty."""

    row: FaultLine
    pattern: str = ""

    def row_of(self, text: str) -> FaultLine | None:
        """If this part matches a line, return the part's row, or a row for the error code in the line;
        otherwise ``None``.
        """
        if self.pattern:
            return self.row if compile_line_pattern(self.pattern).search(text) else None
        code = deciding_code(text, self.row.codes)
        if code is None:
            return None
        role: Role = "consequence" if code.role == "consequence" else "cause"
        strength = min(self.row.strength, 3) if role == "consequence" else self.row.strength
        return FaultLine(class_=code.class_, strength=strength, role=role, retry=code.retry)


@cache
def _parts() -> tuple[RowPart, ...]:
    """Return the parts of all rows of ``faultlines.toml``, in the order of the rows."""
    return tuple(RowPart(row, pattern) for row in fault_lines() for pattern in row.patterns or ("",))


def likely_parts(text: str) -> Iterator[RowPart]:
    """Yield, in the order of the rows, the parts that may match a line. A part may match if the line contains
    a text that the part requires, or if the part requires no text.
    """
    finder, always, by_word = _index()
    lower = text.lower().encode()
    found = {number for word in finder.found_in(lower) for wanted, number in by_word[word] if wanted in lower}
    return (_parts()[number] for number in sorted(found | always))


@cache
def _index() -> tuple[WordFinder, set[int], dict[bytes, list[tuple[bytes, int]]]]:
    """Return an index of the parts, for :func:`likely_parts`: a word finder, the numbers of the parts that
    require no text, and a table.

    The table maps each word to pairs ``(text, number)``: ``text`` contains the word, and the
    part ``number`` can match only a line that contains ``text``.
    """
    always, by_word = set[int](), dict[bytes, list[tuple[bytes, int]]]()
    for number, part in enumerate(_parts()):
        groups = required_words(part.pattern) if part.pattern else ()
        if not groups:
            always.add(number)
        for one in groups[0] if groups else ():
            by_word.setdefault(one.word, []).append((one.text, number))
    return WordFinder(by_word), always, by_word
