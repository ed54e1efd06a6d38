"""Check the vocabulary of all text for readers.

    python -m tests.words [--shrink] [--all] [FILE…]

The program exits with status 1 if the number of a word in a file differs from ``baseline.txt``. ``--shrink``
lowers the numbers in the baseline to the present numbers and follows moved files; it never raises a number.
``--all`` prints every listed word, including words in the baseline. With FILE, the program reads only these
files.
"""

import argparse
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.words.baseline import BASELINE, Counts, counted, followed, grown, read, shrunk, stale, write
from tests.words.find import Found, Words, find, load

ROOT = Path(__file__).parents[2]


def tracked(root: Path) -> list[str]:
    words = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(words, cwd=root, check=True, capture_output=True, text=True).stdout
    return sorted({name for name in listed.split("\0") if name and (root / name).is_file()})


def found_in(root: Path, names: Sequence[str], words: Words) -> list[Found]:
    return [one for name in names for one in find(name, text_of(root / name), words)]


def text_of(path: Path) -> str:
    return path.read_bytes().decode(errors="replace").replace("\r\n", "\n")


def report(found: Sequence[Found], base: Counts, words: Words) -> list[str]:
    now = counted(found)
    above, below = grown(base, now), stale(base, now)
    lines = [f"{one}{_known(base, one)}" for one in found if (one.path, one.word) in above]
    lines += [
        f"{name}: {word}: {now[name, word]} instead of {base[name, word]}; "
        "run `python -m tests.words --shrink` and commit baseline.txt"
        for name, word in sorted(below)
    ]
    lines += [
        f"{name}: {word}: this file may have no entry in baseline.txt"
        for name, word in sorted(base)
        if name in words.clean
    ]
    return lines


def _known(base: Counts, one: Found) -> str:
    number = base[one.path, one.word]
    return f"; baseline: {number} of these in the file" if number else ""


def main(arguments: Sequence[str], root: Path = ROOT, baseline: Path = BASELINE) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.words", description=__doc__.splitlines()[0])
    parser.add_argument("--shrink", action="store_true", help="lower baseline.txt to what is there")
    parser.add_argument("--all", action="store_true", help="print every word, those in baseline.txt too")
    parser.add_argument("files", nargs="*", metavar="FILE", help="read these files instead of all")
    options = parser.parse_args(arguments)
    words, base = load(), read(baseline)
    names = [str(Path(name).resolve().relative_to(root)) for name in options.files] or tracked(root)
    found = found_in(root, names, words)
    if options.all:
        print(*found, sep="\n")
        return 1 if found else 0
    if options.files:
        base = _only(base, names)
    elif options.shrink:
        unread = {name for name in names if name not in words.clean}
        base = shrunk(followed(base, unread), counted(found))
        write(base, baseline)
    lines = report(found, base, words)
    print(*lines, sep="\n", end="\n" if lines else "")
    return 1 if lines else 0


def _only(base: Counts, names: Sequence[str]) -> Counts:
    return Counts({key: number for key, number in base.items() if key[0] in names})


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
