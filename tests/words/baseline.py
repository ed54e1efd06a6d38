"""Read and write ``baseline.txt``: how often each file still has each listed word. Numbers can only decrease.

The file has one line per file and word, sorted, for example ``docs/launch.md: mend: 3``.
"""

from collections import Counter
from collections.abc import Collection, Iterable
from pathlib import Path, PurePosixPath

from tests.words.find import Found

BASELINE = Path(__file__).with_name("baseline.txt")
Counts = Counter[tuple[str, str]]
"""Number of occurrences for each pair (file, word)."""


def counted(found: Iterable[Found]) -> Counts:
    return Counter((one.path, one.word) for one in found)


def read(path: Path = BASELINE) -> Counts:
    counts: Counts = Counter()
    for line in path.read_text().splitlines():
        name, word, number = line.rsplit(": ", 2)
        counts[name, word] = int(number)
    return counts


def write(counts: Counts, path: Path = BASELINE) -> None:
    lines = [f"{name}: {word}: {number}\n" for (name, word), number in sorted(counts.items()) if number > 0]
    path.write_text("".join(lines))


def shrunk(base: Counts, now: Counts) -> Counts:
    """Return the baseline with each number lowered to the present number; the result has no new entries."""
    return Counter({key: min(number, now[key]) for key, number in base.items() if now[key]})


def followed(base: Counts, files: Collection[str]) -> Counts:
    """Return the baseline with the new paths of files that were moved.

    A file counts as moved if its path is gone, and exactly one new file has the same name.
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
    """Return the entries above the baseline, and by how much."""
    return now - base


def stale(base: Counts, now: Counts) -> Counts:
    """Return the entries below the baseline, and by how much."""
    return base - now
