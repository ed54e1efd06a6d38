"""Find a silent failure in job output: every rank reports that it is rank 0 of 1."""

import re

from toolkit.engine.logs.joblines import Line, Output
from toolkit.engine.logs.logsearch import PatternLines, compile_line_pattern
from toolkit.model.finding import Finding

_RANK_OF = (
    r"(?i)\b(?:rank|process|proc|task|worker)\s*[:=#]?\s*(\d{1,6})\s*"
    r"(?:\(.{0,40}?\)\s*)?(?:out\s+of|of|/)\s*(\d{1,6})\b"
)
"""A pattern for rank and world size, as in ``rank 0 of 1``, ``Process 0 out of 1``, ``rank: 0/1``."""

_SIZE = (
    r"(?i)(?:\bworld|\bcomm(?:unicator)?|\bhorovod|\bhvd|\bMPI)(?:[ _.](?:comm|world)){0,3}"
    r"(?:[ _.]?size(?:\(\))?\s*(?:[:=]|is|of|)|\s*(?:[:=]|is|of))\s*(\d{1,6})\b(?![.%])"
)
"""A pattern for the world size, as in ``world size: 1``, ``Horovod size 1``, ``hvd.size() = 1``. A training
batch also has a "size", so the pattern requires a word such as "world" or "Horovod".
"""

_RANK_AND_SIZE = r"(?i)\brank\s*[:=]?\s*(\d{1,6})\b.{0,20}?\bsize\s*[:=]?\s*(\d{1,6})\b"
"""A pattern for rank and world size, as in ``rank 0, size 1``."""

_TOO_FEW = r"\bBenchmark \w{1,40} invalid for (\d{1,6}) processes"
"""A pattern for the line in which Intel's MPI benchmarks report too few ranks; only rank 0 prints this line.
"""

_TOLD = r"^job: \d+, (\d+) ranks? on "
"""A pattern for the first line that toolkit's job script prints. The line contains the number of ranks that
the job requests.
"""

_SIZES = (_RANK_OF, _RANK_AND_SIZE, _SIZE, _TOO_FEW)
CLAIMS = (*_SIZES, _TOLD)
"""All patterns for lines that report a world size or the requested number of ranks."""

_MOST_CLAIMS = 10_000
"""Maximum number of lines about a world size that toolkit reads."""

_SHOWN = 3
_FIX = (
    "run `toolkit doctor IMAGE`, which names a launch mode that works; or give `srun --mpi` an interface "
    "that the MPI in the image supports; or leave out `--cleanenv` and `--containall`, which remove the "
    "launcher's variables"
)


def find_world_of_one(output: Output, matches: PatternLines) -> Finding | None:
    """Return the finding about worlds of size 1. Return ``None`` if fewer than two lines report such a world,
    if a line reports a larger world, or if the job requests only one rank.

    The finding is an error if the job requests several ranks, or if the lines start with different rank
    labels, such as ``0:`` and ``1:`` of ``srun --label``. The finding is a warning if no line has a rank
    label, and two lines differ at most in words with digits, such as ``node01``. In all other cases, the
    result is ``None``.
    """
    claims = [
        (line, size) for line in _claiming(output, matches) if (size := _claimed_size(line.text)) is not None
    ]
    if len(claims) < 2 or any(size != 1 for _, size in claims):
        return None
    tasks = {line.task for line, _ in claims if line.task}
    asked = next((_requested_size(output.line(position).text) for position in matches.positions[_TOLD]), 0)
    certain = len(tasks) > 1 or asked > 1
    if asked == 1 or (not certain and (tasks or not _has_repetition(claims))):
        return None
    title = "Every rank reports a world of size 1, because the MPI in the image does not find the launcher"
    doubt = "The output reports a world of size 1 several times; the ranks of this job may not be connected"
    return Finding(
        id="ranks-alone",
        severity="error" if certain else "warning",
        title=title if certain else doubt,
        evidence=tuple(dict.fromkeys(line.citation for line, _ in claims))[:_SHOWN],
        fix=_FIX,
        source="tests/matrix: worlds of size 1 in more than 200 launches; Apptainer user guide, MPI",
    )


def _claiming(output: Output, matches: PatternLines) -> list[Line]:
    """Return the lines that may report a world size."""
    positions = sorted({position for pattern in _SIZES for position in matches.positions[pattern]})
    return [output.line(position) for position in positions[:_MOST_CLAIMS]]


def _requested_size(text: str) -> int:
    told = compile_line_pattern(_TOLD).search(text)
    return int(told[1]) if told else 0


def _claimed_size(text: str) -> int | None:
    """Return the world size that a line reports; ``None`` if the line reports no world size."""
    for pattern in _SIZES:
        if found := compile_line_pattern(pattern).search(text):
            return int(found[found.re.groups])
    return None


def _has_repetition(claims: list[tuple[Line, int]]) -> bool:
    """Return whether two lines report the same text. Two different lines do not prove two ranks: a single
    program may print rank and size on separate lines.
    """
    said = [_words(line.text) for line, _ in claims]
    return len(set(said)) < len(said)


def _words(text: str) -> str:
    """Return a line without words that contain digits, because such words may differ between ranks."""
    return " ".join(word for word in re.split(r"\W+", text) if not any(c.isdigit() for c in word))
