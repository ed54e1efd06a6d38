"""Pages and files that are made from the code and committed at each release.

    .venv/bin/python -m docs.generate.released            # write them
    .venv/bin/python -m docs.generate.released --check    # list the files that a release would change

`make release` runs the first command, `make release-check` the second. The site shows the pages of the
current code.
"""

import sys
from collections.abc import Callable
from pathlib import Path

from docs.generate import examples, manual
from docs.generate.outside import ROOT
from tests.horovod import pairs as horovod
from tests.horovod import table as horovod_table
from tests.matrix.record import load
from tests.matrix.table import page
from tests.matrix.trainings import load as load_trainings
from toolkit.engine.registry import RULES
from toolkit.knowledge.examples import every_example
from toolkit.report.rules import document

_EXAMPLES = "recipes/knowledge/examples.toml"
_SHARE = "share"


def pages() -> dict[str, str]:
    """Return the committed pages that are made from the code, by their place in the site."""
    return {
        "rules.md": document(RULES),
        "matrix.md": page(load(), load_trainings().trainings),
        "horovod.md": horovod_table.page(horovod.pairs(), horovod.load()),
    }


def files() -> dict[str, str]:
    """Return the text of each committed file that is made from the code, by its path in the repository."""
    shared = {f"{_SHARE}/{name}": text for name, text in manual.files().items()}
    return {f"docs/{name}": text for name, text in pages().items()} | shared


def changed(root: Path, made: dict[str, str]) -> list[str]:
    """Return the paths of files that differ from ``made``, and of files in ``share`` that ``made`` lacks."""
    differing = {name for name, text in made.items() if _text(root / name) != text}
    return sorted(differing | _surplus(root, made))


def write(root: Path, made: dict[str, str]) -> list[str]:
    """Write and remove files until they agree with ``made``; return their paths, as :func:`changed` does."""
    paths = changed(root, made)
    for name in paths:
        file = root / name
        if name in made:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(made[name], "utf-8")
        else:
            file.unlink()
    return paths


def _surplus(root: Path, made: dict[str, str]) -> set[str]:
    there = {str(p.relative_to(root)) for p in (root / _SHARE).rglob("*") if p.is_file()}
    return there - set(made) if any(name.startswith(f"{_SHARE}/") for name in made) else set()


def _text(file: Path) -> str | None:
    return file.read_text("utf-8") if file.is_file() else None


def _each(act: Callable[[Path, dict[str, str]], list[str]]) -> list[str]:
    """Call ``act`` for the examples first, because the pages of the rules show the examples."""
    first = act(ROOT, {_EXAMPLES: examples.examples()})
    every_example.cache_clear()
    return first + act(ROOT, files())


def main(words: list[str]) -> int:
    """Write or compare the files, and print the path of each that differs."""
    check = words == ["--check"]
    paths = _each(changed if check else write)
    if check and paths:
        sys.stderr.write(
            "A release would change these files; to write them: python -m docs.generate.released\n"
        )
    sys.stdout.writelines(f"{path}\n" for path in paths)
    return 1 if check and paths else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
