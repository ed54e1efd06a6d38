"""The page of supported software and hardware, from the table in README.md."""

import re
from pathlib import Path

PAGE = "reference/supported.md"
_README = Path(__file__).resolve().parents[2] / "README.md"
_TITLE = "Supported software and hardware"
_LINK = re.compile(r"\]\(docs/")


def pages() -> dict[str, str]:
    """Return the text of the page, by its place in the site."""
    section = _README.read_text("utf-8").partition(f"## {_TITLE}\n")[2].partition("\n[Recorded launches]")[0]
    return {PAGE: _LINK.sub("](../", f"# {_TITLE}\n{section}")}
