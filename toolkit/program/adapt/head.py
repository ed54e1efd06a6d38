"""Insert lines at the start of an adapted script (imports, lines that connect the ranks, helper functions),
and at its end (lines that disconnect the ranks).
"""

import ast
import re
from collections.abc import Sequence

from toolkit.program.adapt.edits import Unplaceable
from toolkit.program.adapt.work import Work


def put_head(work: Work, imports: Sequence[str], start: Sequence[str], *, before_main: bool) -> bool:
    """After a script's imports, insert the lines ``imports``, the lines ``start`` that connect the ranks, and
    helper functions.

    If ``before_main`` is false and the script has a statement ``if __name__ == "__main__"``, the lines
    ``start`` are the first lines in the body of this statement. In all other cases, the lines ``start``
    follow the imports directly. Return False if toolkit finds no import after which it can insert lines.
    """
    place = _last_import(work)
    if place is None:
        return False
    helpers = list(work.helpers)
    while helpers and not helpers[-1]:
        helpers.pop()
    main = None if before_main else main_guard(work)
    lines = [*dict.fromkeys([*work.imports, *imports])]
    if main is None:
        lines += ["", *start]
    if helpers:
        lines += ["", "", *helpers]
    rest = work.source.text[work.source.end(place) :].replace("\r\n", "\n").replace("\r", "\n")
    blank = re.match(r"[^\r\n]*(\r\n|\r|\n)[ \t]*(\r\n|\r|\n)", rest)
    if helpers and blank and not re.match(r"[^\r\n]*((\r\n|\r|\n)[ \t]*){3}", rest):
        lines.append("")
    if not blank and rest.strip():
        lines.append("")
    try:
        work.edits.after(place, lines, rank=-20)
        if main is not None:
            work.edits.before(main.body[0], list(start), rank=-20)
    except Unplaceable:
        return False
    work.did(place, "imports the modules that the changed script needs")
    work.did(main.body[0] if main is not None else place, "connects the ranks")
    return True


def put_end(work: Work, lines: Sequence[str]) -> None:
    """At the end of the program, insert lines that disconnect the ranks."""
    main = main_guard(work)
    last = (main.body if main is not None else work.source.tree.body)[-1]
    if (
        isinstance(last, ast.Expr)
        and isinstance(last.value, ast.Call)
        and work.source.dotted_name(last.value.func) in {"sys.exit", "exit"}
    ):
        work.leave(last, f"call `{lines[-1]}` yourself, after the training and before the script exits")
        return
    work.after(last, lines, "disconnects the ranks", rank=20)


def main_guard(work: Work) -> ast.If | None:
    """Return the ``if __name__ == "__main__"`` statement, or ``None``."""
    for node in work.source.tree.body:
        if (
            isinstance(node, ast.If)
            and isinstance(node.test, ast.Compare)
            and work.source.dotted_name(node.test.left) == "__name__"
        ):
            return node
    return None


def _last_import(work: Work) -> ast.stmt | None:
    """Return the last import that precedes all functions, all classes and all of toolkit's edits, or
    ``None``.
    """
    first = min((edit for edit in work.edits.places), default=len(work.source.text))
    found: ast.stmt | None = None
    for node in work.source.tree.body:
        if (
            isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
            or work.source.end(node) > first
        ):
            break
        tries = isinstance(node, ast.Try | ast.If) and any(
            isinstance(one, ast.Import | ast.ImportFrom) for one in node.body
        )
        if isinstance(node, ast.Import | ast.ImportFrom) or tries:
            found = node
    return found
