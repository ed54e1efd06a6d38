"""Change the callbacks of ``model.fit``: add Horovod's callbacks, and let only rank 0 write files."""

import ast

from toolkit.program.adapt.source import argument, keyword, method
from toolkit.program.adapt.table import table
from toolkit.program.adapt.work import Work

_ALL = ("callbacks.BroadcastGlobalVariablesCallback(0)", "callbacks.MetricAverageCallback()")


def callbacks(work: Work, fit: ast.Call, module: str) -> bool:
    """Change the callbacks of one ``fit`` call; return whether toolkit found a callback that writes files.

    ``module`` is the script's name for Horovod's module, such as ``hvd``. For a TensorFlow strategy,
    ``module`` is empty.
    """
    ours = ", ".join(f"{module}.{one}" for one in _ALL) if module else ""
    given = keyword(fit, "callbacks")
    if given is None or (isinstance(given.value, ast.Constant) and given.value.value is None):
        if ours and given is None:
            work.edits.add_argument(fit, f"callbacks=[{ours}]")
        elif ours and given is not None:
            work.edits.replace(work.source.start(given.value), work.source.end(given.value), f"[{ours}]")
        if ours:
            work.did(fit, "starts all ranks with the weights of rank 0, and averages the metrics")
        return False
    lists = work.flow.sources(given.value)
    if not all(isinstance(one, ast.List) for one in lists):
        if ours:
            work.edits.wrap(given.value, f"[{ours}, *(", ")]")
            work.did(given.value, "starts all ranks with the weights of rank 0, and averages the metrics")
        work.leave(
            given.value,
            f"adapt cannot find the callbacks in `{work.shown(given.value)}`; make sure that the callbacks "
            "write files only on rank 0",
        )
        return False
    writes = False
    for one in lists:
        if isinstance(one, ast.List) and work.once(one):
            writes |= _list(work, one, ours)
    return writes | _change_appended(work, given.value)


def _list(work: Work, node: ast.List, callbacks: str) -> bool:
    if callbacks:
        _begin(work, node, callbacks)
        work.did(node, "starts all ranks with the weights of rank 0, and averages the metrics")
    found = [_element(work, one) for one in node.elts]
    return any(found)


def _begin(work: Work, node: ast.List, callbacks: str) -> None:
    """Insert callbacks at the beginning of a list, with the same line breaks and indentation as the list."""
    source = work.source
    start = source.start(node) + 1
    if not node.elts:
        work.edits.insert(start, callbacks)
        return
    between = source.text[start : source.start(node.elts[0])]
    begin = source.line_start(start)
    if "\n" in between or "\r" in between:
        each = "".join(f"{between}{one}," for one in callbacks.split(", "))
        work.edits.insert(start, each, rank=-9)
    elif "\t" in source.text[begin:start] or len(source.text[begin : source.end(node)]) < 40:
        work.edits.insert(start, f"{callbacks}, ", rank=-9)
    else:
        work.edits.insert(start, f"{callbacks},{source.newline}{' ' * (start - begin)}", rank=-9)


def _element(work: Work, node: ast.expr) -> bool:
    """If a callback writes files, change the callback and return True.

    With Horovod, only rank 0 runs the callback. With a TensorFlow strategy, all ranks run the callback, and
    each rank gets a separate path.
    """
    value = node.value if isinstance(node, ast.Starred) else node
    names = [_kind(work, source) for source in work.flow.sources(value)]
    known = table().keras.callbacks
    for source, name in zip(work.flow.sources(value), names, strict=True):
        if name in known.own_rate and work.once(source):
            work.leave(
                source,
                f"{name} sets the learning rate: multiply the rates by the number of ranks, `{work.size}`",
            )
        if name in known.restores and work.once(source):
            what = "give each rank its own backup folder, and make all ranks resume at the same epoch"
            work.leave(source, f"{name}: {what}")
    if not any(name in known.writers for name in names):
        return False
    if work.path_helper:
        _own_files(work, value)
    elif work.once(node):
        work.edits.wrap(node, "*([", f"] if {work.on_first_rank} else [])")
        work.did(node, "writes only on rank 0")
    return True


def _own_files(work: Work, value: ast.expr) -> None:
    """Give each rank a separate path for the files of a callback that all ranks must run. Rank 0 uses the
    script's path; the other ranks use temporary folders.
    """
    for source in work.flow.sources(value):
        path = (
            argument(source, 0, "filepath", "filename", "log_dir") if isinstance(source, ast.Call) else None
        )
        if path is not None and work.once(path):
            work.edits.wrap(path, f"{work.path_helper}(", ")")
            work.did(source, "rank 0 uses this path; the other ranks write to temporary folders")


def _kind(work: Work, node: ast.expr) -> str:
    return work.source.dotted_name(node.func).rpartition(".")[2] if isinstance(node, ast.Call) else ""


def _change_appended(work: Work, node: ast.expr) -> bool:
    """Change the callbacks that the script appends to the list ``node``: only rank 0 appends callbacks that
    write files. For a TensorFlow strategy, all ranks append these callbacks, each with a separate path.

    Return True if the script appends a callback that writes files.
    """
    if not isinstance(node, ast.Name):
        return False
    found = False
    for call in work.source.calls():
        if method(call) != "append" or not isinstance(call.func, ast.Attribute) or len(call.args) != 1:
            continue
        receiver = call.func.value
        if not isinstance(receiver, ast.Name) or receiver.id != node.id:
            continue
        if any(
            _kind(work, one) in table().keras.callbacks.writers for one in work.flow.sources(call.args[0])
        ):
            found = True
            if work.path_helper:
                _own_files(work, call.args[0])
            elif work.source.stands_alone(statement := work.source.statement(call)):
                work.edits.guard(statement)
                work.did(statement, "writes only on rank 0")
            else:
                work.leave(call, f"`{work.shown(call)}`: make sure that this callback runs only on rank 0")
        else:
            _element(work, call.args[0])
    return found
