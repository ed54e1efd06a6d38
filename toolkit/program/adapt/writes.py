"""Let only rank 0 run statements that write or print."""

import ast

from toolkit.program.adapt.edits import Unplaceable
from toolkit.program.adapt.source import argument, keyword, method
from toolkit.program.adapt.table import is_one_of, table
from toolkit.program.adapt.work import Work


def on_rank_0(work: Work, barrier: str, common_calls: frozenset[ast.AST] = frozenset()) -> None:
    """Let only rank 0 run statements that write or print: put these statements into the body of an ``if``.

    ``barrier`` is a statement that waits for all ranks. toolkit inserts the barrier before the script reads a
    file that rank 0 may have written. If ``barrier`` is empty, toolkit inserts no barrier. ``common_calls``
    contains the calls that all ranks must make, so toolkit does not restrict these calls to rank 0.
    """
    for statement in _statements(work):
        call = _call(statement)
        if call is None or call in common_calls:
            continue
        kind = _kind(work, call)
        if kind:
            _guard(work, statement, call, kind)
    saved = min((one.line for one in work.changes if one.what.startswith("writes")), default=None)
    for call in work.source.calls():
        _folder(work, call)
        if saved is not None and barrier and call.lineno > saved and _loads(work, call):
            _wait(work, call, barrier)


def writes_elsewhere(work: Work) -> None:
    """If a call inside a larger statement writes a file, add a note for the user, because toolkit cannot
    restrict the call to rank 0.
    """
    for call in work.source.calls():
        statement = work.source.statement(call)
        writes = is_one_of(work.source.dotted_name(call.func), table().writes.calls)
        if writes and _call(statement) is not call and not isinstance(statement, ast.With):
            work.leave(
                call, f"`{work.shown(call)}` runs on every rank: the call is part of a larger statement"
            )


def _statements(work: Work) -> list[ast.stmt]:
    return sorted(
        (one for one in ast.walk(work.source.tree) if isinstance(one, ast.Expr | ast.With)),
        key=lambda one: (one.lineno, one.col_offset),
    )


def _call(statement: ast.stmt) -> ast.Call | None:
    """Return the call of a statement that contains only this call, or of a ``with`` statement that opens a
    file for writing. Return ``None`` for any other statement.
    """
    if isinstance(statement, ast.Expr):
        value = statement.value
        return value if isinstance(value, ast.Call) else None
    if isinstance(statement, ast.With) and len(statement.items) == 1:
        call = statement.items[0].context_expr
        if isinstance(call, ast.Call) and _opens(call):
            return call
    return None


def _opens(call: ast.Call) -> bool:
    name = call.func.id if isinstance(call.func, ast.Name) else method(call)
    if name != "open":
        return False
    mode = argument(call, 1 if isinstance(call.func, ast.Name) else 0, "mode")
    return (
        isinstance(mode, ast.Constant) and isinstance(mode.value, str) and mode.value[:1] in {"w", "a", "x"}
    )


def _kind(work: Work, call: ast.Call) -> str:
    known = table().writes
    name = work.source.dotted_name(call.func)
    if name == "print":
        return "prints"
    if work.flow.function_of(call) is not None:
        return ""
    if method(call) == "write" and name.startswith(("sys.stdout", "sys.stderr")):
        return "prints"
    return "writes" if _opens(call) or is_one_of(name, known.calls) or method(call) in known.methods else ""


def _guard(work: Work, statement: ast.stmt, call: ast.Call, kind: str) -> bool:
    source = work.source
    if any(isinstance(one, ast.With) and _call(one) for one in source.around(statement)):
        return False
    if stranger := _stranger(work, statement, call):
        if kind == "writes":
            work.leave(
                call,
                f"`{work.shown(call)}` runs on every rank: all ranks may need the call "
                f"`{work.shown(stranger)}`; put that call into a separate statement",
            )
        return False
    try:
        work.edits.guard(statement)
    except Unplaceable:
        if kind == "writes":
            work.leave(
                call,
                f"`{work.shown(call)}` runs on every rank: the call shares its line with other statements",
            )
        return False
    work.did(statement, f"{kind} only on rank 0")
    return True


def _stranger(work: Work, statement: ast.stmt, call: ast.Call) -> ast.Call | None:
    """Return a call in ``statement``, other than ``call``, whose side effects all ranks may need. Return
    ``None`` if ``statement`` contains no such call.
    """
    known = table().writes
    for one in work.source.calls(statement):
        name = work.source.dotted_name(one.func)
        plain = is_one_of(name, (*known.plain, *known.calls)) or method(one) in (
            *known.plain_methods,
            *known.methods,
        )
        inner = isinstance(work.source.parents[one], ast.Attribute) and work.source.calls(one)
        if one is not call and (not plain or work.flow.function_of(one) is not None) and inner is not None:
            return one
    return None


def _folder(work: Work, call: ast.Call) -> None:
    """Add ``exist_ok=True`` to a call that creates a folder, because several ranks may create the same
    folder.
    """
    name = work.source.dotted_name(call.func)
    own = method(call) == "mkdir" and name != "os.mkdir" and work.flow.function_of(call) is None
    if (own or name == "os.makedirs") and keyword(call, "exist_ok") is None and len(call.args) < 3:
        work.edits.add_argument(call, "exist_ok=True")
        work.did(call, "adds `exist_ok=True`, because several ranks may create the folder")


def _loads(work: Work, call: ast.Call) -> bool:
    known = table().writes
    return is_one_of(work.source.dotted_name(call.func), known.loads) or method(call) in known.load_methods


def _wait(work: Work, call: ast.Call, barrier: str) -> None:
    """Insert a barrier before a statement that reads a file, so that no rank reads the file before rank 0 has
    written it. In an ``if`` that tests whether a file exists, insert no barrier.
    """
    statement = work.source.statement(call)
    tests = [one.test for one in work.source.around(statement) if isinstance(one, ast.If)]
    if any(method(c) in {"exists", "is_file", "isfile"} for test in tests for c in work.source.calls(test)):
        return
    if not work.once(statement):
        return
    work.before(statement, [barrier], "waits until rank 0 has written the file that this line reads")
