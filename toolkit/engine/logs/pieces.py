"""Explain several output files of one job; the evidence names the file and line number of each line."""

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from toolkit.engine.logs.explanation import explain_output
from toolkit.engine.logs.joblines import Output
from toolkit.model.finding import OutputExplanation

_CITED = re.compile(r"^line (\d+): ")


@dataclass(frozen=True, slots=True)
class Piece:
    """An output file, or another text about a job, such as the accounting data of Slurm. ``missing_lines``
    is the number of lines that are missing between ``head`` and ``tail``.

    ``name`` is empty if the evidence needs no file name. ``counted`` is false for a text whose line numbers
    the evidence does not show.
    """

    name: str
    head: bytes
    tail: bytes = b""
    missing_lines: int = 0
    counted: bool = True


class _Places:
    """Converts a line number in the joined text of several pieces to the piece that contains the line, and
    the line's number in this piece.
    """

    def __init__(self, pieces: Sequence[Piece]) -> None:
        self._pieces = pieces
        self._firsts = [1]
        for piece in pieces:
            self._firsts.append(self._firsts[-1] + _with_line_end(piece).count(b"\n"))

    def at(self, number: int) -> tuple[str, int]:
        """Return the name of the piece that contains line ``number`` of the joined text, and the line's
        number in the piece; 0 instead of the number for a piece that is not ``counted``.
        """
        index = min(bisect_right(self._firsts, number) - 1, len(self._pieces) - 1)
        piece = self._pieces[index]
        own = number - self._firsts[index] + 1
        return piece.name, own if piece.counted else 0

    def citation(self, text: str) -> str:
        """Return a line of evidence whose line number in the joined text is replaced by the name of the file
        and the line number in this file.
        """
        found = _CITED.match(text)
        if not found:
            return text
        name, number = self.at(int(found[1]))
        where = ", ".join([*([name] if name and number else []), *([f"line {number}"] if number else [])])
        return f"{where}: {text[found.end() :]}" if where else text[found.end() :]


def explain_pieces(pieces: Sequence[Piece]) -> OutputExplanation:
    """Explain a job whose output is in several files."""
    whole = [piece for piece in pieces if piece.head or piece.tail]
    if len(whole) == 1 and not whole[0].name:
        return explain_output(Output(whole[0].head, whole[0].tail, whole[0].missing_lines))
    if len(whole) > 1 and whole[0].tail and not any(piece.tail or piece.counted for piece in whole[1:]):
        more = b"".join(_with_line_end(piece) for piece in whole[1:])
        return explain_output(Output(whole[0].head, whole[0].tail + more, whole[0].missing_lines))
    found = explain_output(Output(b"".join(_with_line_end(piece) for piece in whole)))
    return _locate_lines(found, _Places(whole)) if whole else found


def _with_line_end(piece: Piece) -> bytes:
    """Return the bytes of a piece, with a line break at the end."""
    text = piece.head + piece.tail
    return text if text.endswith(b"\n") else text + b"\n"


def _locate_lines(explanation: OutputExplanation, places: _Places) -> OutputExplanation:
    replace = msgspec.structs.replace
    root = explanation.root
    if root is not None:
        name, number = places.at(root.number)
        root = replace(root, file=name, number=number)
    known = tuple(
        replace(one, evidence=tuple(map(places.citation, one.evidence))) for one in explanation.findings
    )
    return replace(
        explanation,
        root=root,
        findings=known,
        ended=tuple(map(places.citation, explanation.ended)),
        consequences=tuple(map(places.citation, explanation.consequences)),
    )
