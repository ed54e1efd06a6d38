"""Generate job output of a given size: harmless lines of one kind, and a failure at the end."""

from collections.abc import Iterator
from itertools import count
from pathlib import Path

ROOT = "ValueError: shard 7 has no index"
"""The line with the root cause, in every generated output."""

_END = f"""\
3: Traceback (most recent call last):
3:   File "/home/ada/train.py", line 12, in <module>
3:     main()
3: {ROOT}
srun: error: node2: task 3: Exited with exit code 1
srun: Terminating StepId=8.0
"""


def _steps() -> Iterator[str]:
    for n in count():
        yield f"{n % 8}: step {n} loss 0.{n % 997:03d} error 0.00{n % 89} images/s 1{n % 900}.2\n"


def _words() -> Iterator[str]:
    for n in count():
        word = "".join(chr(97 + (n // 26**k) % 26) for k in range(6))
        text = f"could not prefetch {word}, retrying in 5 s" if n % 10 == 0 else f"read {word} of the shard"
        yield f"{n % 8}: {word}.loader {text}\n"


def _failures() -> Iterator[str]:
    for n in count():
        word = "".join(chr(97 + (n // 26**k) % 26) for k in range(6))
        text = f"ERROR cannot read {word}.jpg" if n % 5 == 0 else f"cached {word}.jpg of the shard"
        yield f"{n % 8}: {text}\n"


KINDS = {"steps": _steps, "words": _words, "failures": _failures}


def make(file: Path, kind: str, size: int) -> None:
    lines, written = KINDS[kind](), 0
    with file.open("w", encoding="ascii") as out:
        while written < size - len(_END):
            block = "".join(next(lines) for _ in range(10_000))
            written += out.write(block[: size - len(_END) - written].rpartition("\n")[0] + "\n")
        out.write(_END)
