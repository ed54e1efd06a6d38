"""Draw ``docs/images/architecture.svg`` from the import contracts of ``pyproject.toml``.

    .venv/bin/python -m docs.generate.architecture

writes the picture; a test compares the committed picture with the contracts.
"""

import tomllib
from xml.sax.saxutils import escape

from docs.generate.outside import ROOT

PICTURE = ROOT / "docs" / "images" / "architecture.svg"
CONTRACT = "Data flows one way"
"""The contract whose layers the picture shows."""

_WIDTH = 760
_MARGIN = 16
_STACK = 560
_ROW = 52
_BOX = 36
_GAP = 8
_SIBLINGS = 5
_STYLE = """
    text { font: 13px ui-monospace, "DejaVu Sans Mono", monospace; fill: #1b1f27; text-anchor: middle; }
    .small { font: 12px system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; fill: #4a5160; }
    .box { fill: #e6f1f8; stroke: #0072b2; }
    .world { fill: #fdf1d8; stroke: #b27a00; }
    .apart { fill: #f3f4f6; stroke: #6b7280; }
    .line { stroke: #4a5160; fill: none; stroke-width: 1.6; }
    .head { fill: #4a5160; }
    @media (prefers-color-scheme: dark) {
      text { fill: #e6e8ee; }
      .small { fill: #b4bac8; }
      .box { fill: #123449; stroke: #56b4e9; }
      .world { fill: #46340d; stroke: #e69f00; }
      .apart { fill: #2a2e39; stroke: #9aa1b1; }
      .line { stroke: #b4bac8; }
      .head { fill: #b4bac8; }
    }
  """


def layers() -> list[list[str]]:
    """Return the layers of the contract, top first: the names of their modules without ``toolkit.``."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    contract = next(one for one in settings["contracts"] if one["name"] == CONTRACT)
    return [
        [name.strip().removeprefix("toolkit.") for name in layer.replace("|", ":").split(":")]
        for layer in contract["layers"]
    ]


def picture(rows: list[list[str]]) -> str:
    """Return the picture as SVG: a row of boxes for each layer of ``rows``, and a box for the trainers."""
    lines = [part for row in rows for part in _parts(row)]
    height = 2 * _MARGIN + _ROW * len(lines)
    body = [_box(names, _MARGIN + _ROW * number) for number, names in enumerate(lines)]
    return "\n".join([*_head(height), *body, _trainers(height), _arrow(height), "</svg>", ""])


def _parts(row: list[str]) -> list[list[str]]:
    """Split the module names of a layer into lines of at most five names."""
    return [row[first : first + _SIBLINGS] for first in range(0, len(row), _SIBLINGS)]


def _head(height: int) -> list[str]:
    return [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}"',
        f'  width="{_WIDTH}" height="{height}" role="img" aria-labelledby="t d">',
        '  <title id="t">The layers of toolkit</title>',
        '  <desc id="d">Each row may import the rows below it. The trainers import none of them.</desc>',
        f"  <style>{_STYLE}</style>",
        '  <defs><marker id="a" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="8" orient="auto">',
        '    <path class="head" d="M0 0 L10 5 L0 10 z"/></marker></defs>',
    ]


def _box(names: list[str], top: int) -> str:
    width = (_STACK - _GAP * (len(names) - 1)) / len(names)
    lefts = [4 * _MARGIN + number * (width + _GAP) for number in range(len(names))]
    return "\n".join(
        _rectangle(left, top, width, _BOX, name, "world" if name == "run" else "box")
        for left, name in zip(lefts, names, strict=True)
    )


def _rectangle(left: float, top: float, width: float, height: float, name: str, kind: str) -> str:
    middle, base = left + width / 2, top + height / 2 + 4
    return (
        f'  <rect class="{kind}" x="{left:g}" y="{top:g}" width="{width:g}" height="{height:g}" rx="5"/>\n'
        f'  <text x="{middle:g}" y="{base:g}">{escape(name)}</text>'
    )


def _trainers(height: int) -> str:
    left, width = 4 * _MARGIN + _STACK + _MARGIN, _WIDTH - _STACK - 6 * _MARGIN
    box = _rectangle(left, _MARGIN, width, height - 2 * _MARGIN - _ROW + _BOX, "trainers", "apart")
    middle = left + width / 2
    return f'{box}\n  <text class="small" x="{middle:g}" y="{height / 2 + 22:g}">in images</text>'


def _arrow(height: int) -> str:
    x = 1.5 * _MARGIN
    return (
        f'  <path class="line" d="M{x:g} {_MARGIN} V{height - 2 * _MARGIN}" marker-end="url(#a)"/>\n'
        f'  <text class="small" transform="rotate(-90 {x + 16:g} {height / 2:g})" x="{x + 16:g}" '
        f'y="{height / 2:g}">may import</text>'
    )


if __name__ == "__main__":
    PICTURE.write_text(picture(layers()))
