"""Write the HTML frame of a page about studies, for screens of any size and for print (pure functions)."""

from collections.abc import Iterable
from html import escape

from toolkit.report.plain import make_visible

_PAGE = """\
<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
{style}</style></head>
<body>
{body}
</body>
</html>
"""

_STYLE = """\
:root { color-scheme: light dark; --ink: #1a1a1a; --grey: #5f5f5f; --line: #dddddd; --blue: #0072b2; }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.2rem clamp(0.9rem, 3vw, 3rem) 3rem; max-width: 112rem; color: var(--ink);
  background: #ffffff; font: 1rem/1.5 system-ui, "DejaVu Sans", sans-serif; }
h1 { font-size: clamp(1.4rem, 4vw, 2.1rem); line-height: 1.2; margin: 0.4rem 0 0.8rem;
  overflow-wrap: anywhere; }
h2 { font-size: 1.2rem; margin: 1.8rem 0 0.5rem; }
h3 { font-size: 1rem; margin: 0.9rem 0 0.2rem; color: var(--grey); }
p, ul { max-width: 76ch; margin: 0.4rem 0; padding-left: 0; }
ul { padding-left: 1.2rem; }
li { margin: 0.25rem 0; }
.cards { display: flex; flex-wrap: wrap; gap: 0.7rem; }
.card { border-left: 0.3rem solid var(--blue); background: #f5f7f9; padding: 0.5rem 0.9rem; min-width: 11rem;
  display: flex; flex-direction: column; }
.card b { font-size: 1.7rem; line-height: 1.25; font-variant-numeric: tabular-nums; }
.card span { font-size: 0.85rem; color: var(--grey); }
.plots { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 24rem), 1fr));
  gap: 1.4rem 2rem; margin-top: 1.4rem; }
figure { margin: 0; max-width: 46rem; }
figure svg { display: block; width: 100%; height: auto; }
.beside { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 34rem), 1fr));
  gap: 0.6rem 3rem; }
.beside.tables { grid-template-columns: repeat(auto-fit, minmax(min(100%, 46rem), 1fr)); }
.wide { overflow-x: auto; }
.tables td { white-space: nowrap; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: 0.93rem; }
th, td { text-align: right; padding: 0.3rem 0.8rem; border-bottom: 1px solid var(--line);
  vertical-align: top; }
thead th { border-bottom: 2px solid var(--ink); font-weight: 600; vertical-align: bottom; }
caption { text-align: left; font-weight: 600; color: var(--grey); padding: 0.3rem 0.8rem; }
td small { display: block; color: var(--grey); white-space: nowrap; }
tr.predicted { font-style: italic; color: #444444; }
table.environment th { text-align: left; font-weight: 600; white-space: nowrap; }
table.environment td { text-align: left; overflow-wrap: anywhere; max-width: 70ch; }
@media (max-width: 40rem) {
  th, td { padding: 0.25rem 0.4rem; font-size: 0.85rem; }
  table.environment th, table.environment td { display: block; border: 0; padding: 0.1rem 0; }
  table.environment td { padding-bottom: 0.5rem; border-bottom: 1px solid var(--line); }
}
@media screen and (prefers-color-scheme: dark) {
  :root { --ink: #e6e6e6; --grey: #a8a8a8; --line: #3a3f45; --blue: #56b4e9; }
  body { background: #16191d; }
  .card { background: #20252b; }
  tr.predicted { color: #bdbdbd; }
  figure svg { filter: invert(0.9) hue-rotate(180deg); }
}
@media print { body { max-width: none; padding: 0; } figure, tr, .card { break-inside: avoid; } }
"""


def html_page(title: str, body: Iterable[str], style: str = "") -> str:
    """Return an HTML document that loads no other file.

    Args:
        title: the title of the page as HTML.
        body: the parts of the page in order, as HTML; empty parts are omitted.
        style: additional CSS, which follows the CSS of all pages.
    """
    return make_visible(_PAGE.format(title=title, style=_STYLE + style, body="\n".join(filter(None, body))))


def environment_table(values: Iterable[tuple[str, str]]) -> str:
    """Return an HTML table of names and values."""
    cells = "".join(f"<tr><th>{escape(name)}</th><td>{escape(value)}</td></tr>" for name, value in values)
    return f'<div class="wide"><table class="environment">{cells}</table></div>'
