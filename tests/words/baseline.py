"""``baseline.txt``: how often each file still has each word. Counts can only go down.

One line a file and word, sorted: ``docs/launch.md: mend: 3``.
"""

from collections import Counter
from collections.abc import Collection, Iterable
from pathlib import Path, PurePosixPath

from tests.words.find import Found

BASELINE = Path(__file__).with_name("baseline.txt")
Counts = Counter[tuple[str, str]]
"""(file, word) → how often."""


def counted(found: Iterable[Found]) -> Counts:
    """Return how often each file has each word."""
    return Counter((one.path, one.word) for one in found)


def read(path: Path = BASELINE) -> Counts:
    """Return the counts of a file; a line of another form is a ``ValueError``."""
    counts: Counts = Counter()
    for line in path.read_text().splitlines():
        name, word, number = line.rsplit(": ", 2)
        counts[name, word] = int(number)
    return counts


def write(counts: Counts, path: Path = BASELINE) -> None:
    """Write the counts above zero, sorted."""
    lines = [f"{name}: {word}: {number}\n" for (name, word), number in sorted(counts.items()) if number > 0]
    path.write_text("".join(lines))


def shrunk(base: Counts, now: Counts) -> Counts:
    """Return the smaller of both counts for each entry of the baseline; nothing is added."""
    return Counter({key: min(number, now[key]) for key, number in base.items() if now[key]})


def followed(base: Counts, files: Collection[str]) -> Counts:
    """Return the baseline with the entries of a file that was moved under its new path.

    A file was moved if its path is gone and one file of the same name has no entry yet.
    """
    known = {name for name, _ in base}
    new: dict[str, list[str]] = {}
    for name in set(files) - known:
        new.setdefault(PurePosixPath(name).name, []).append(name)
    gone = known - set(files)
    names = Counter(PurePosixPath(name).name for name in gone)
    place = {
        name: found[0]
        for name in gone
        if len(found := new.get(last := PurePosixPath(name).name, [])) == names[last] == 1
    }
    return Counter({(place.get(name, name), word): number for (name, word), number in base.items()})


def grown(base: Counts, now: Counts) -> Counts:
    """Return the counts above the baseline, and by how much."""
    return now - base


def stale(base: Counts, now: Counts) -> Counts:
    """Return the counts below the baseline, and by how much."""
    return base - now
