"""Find the files, the keyboard input and the GPUs that a program certainly needs at run time."""

import ast
from collections.abc import Iterator

from toolkit.knowledge.joins import joins
from toolkit.program.script.facts import Kind, Need
from toolkit.program.script.names import Names
from toolkit.program.script.paths import Paths
from toolkit.program.script.reached import reached_nodes

_KEYBOARD = {"input", "breakpoint", "pdb.set_trace", "ipdb.set_trace", "getpass.getpass"}
_FILE_METHODS = {"read_text", "read_bytes"}
_MOVES = {"os.chdir", "contextlib.chdir"}
"""Calls that change the working directory, and therefore the meaning of relative paths."""
_OPENS = {"open", "io.open", "codecs.open", "gzip.open", "h5py.File", "zipfile.ZipFile", "tarfile.open"}
_GROUPS = {"torch.distributed.init_process_group", "torch.distributed.distributed_c10d.init_process_group"}
_STARTS = {f"subprocess.{name}" for name in ("run", "call", "check_call", "check_output", "Popen")}
"""Calls that start a program, and fail if the program does not exist."""
_WRITES = set("wax+")


def needs_of(tree: ast.Module, names: Names, paths: Paths, file: str) -> Iterator[Need]:
    """Yield the files, devices and other things that a program certainly needs, in the order of their use.

    Args:
        tree: the syntax tree of the program's main file.
        names: the full dotted names of the names in ``tree``.
        paths: the evaluator for the paths in ``tree``.
        file: the path of the main file, for the field ``file`` of each result.
    """
    fixed = _replaced(tree)
    moved = False
    old = {f"tensorflow.{name}" for name in joins().needs.tensorflow_1}
    for node in reached_nodes(tree):
        if (
            isinstance(node, ast.Attribute)
            and (name := names.dotted_name(node)) in old
            and not _bound(node, fixed)
        ):
            yield Need("tensorflow-1", f"tf.{name.partition('.')[2]}", file, node.lineno)
        if not isinstance(node, ast.Call):
            continue
        moved |= names.dotted_name(node.func) in _MOVES
        for kind, text in _of_call(node, names, paths):
            # A path of the kind "beside" is absolute, so it does not depend on the working directory.
            files = kind in {"file", "argument", "option"}
            if text.partition("(")[0] not in fixed and not (files and moved):
                yield Need(kind, text, file, node.lineno)


def _bound(node: ast.expr, names: set[str]) -> bool:
    """Return whether the first part of a dotted expression, such as ``tf`` in ``tf.Session``, is in
    ``names``.
    """
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name) and node.id in names


def strings_of(tree: ast.Module) -> Iterator[str]:
    """Yield the string literals of a module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def _replaced(tree: ast.Module) -> set[str]:
    """Return the names of a module's functions and variables. A call of such a name does not call the
    built-in function with this name.
    """
    return {n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)} | {
        n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
    }


def _of_call(call: ast.Call, names: Names, paths: Paths) -> Iterator[tuple[Kind, str]]:
    name = names.dotted_name(call.func)
    if name in _KEYBOARD:
        yield "keyboard", f"{name}()"
    elif shown := _gpu(call, name, names, paths):
        yield "gpu", shown
    elif name in _STARTS:
        if command := _started(call):
            yield "command", command
    elif (node := _file(call, name)) is not None:
        if (path := paths.path(node)) is not None:
            yield "file" if paths.elsewhere().path(node) == path else "beside", path
        elif argument := _argument(node, names):
            yield "argument", argument
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            yield "option", node.attr


def _file(call: ast.Call, name: str) -> ast.expr | None:
    """Return the expression for the path of the file that a call reads, or ``None``."""
    given = {keyword.arg: keyword.value for keyword in call.keywords}
    if name in _OPENS:
        mode = given.get("mode") or (call.args[1] if len(call.args) > 1 else None)
        reads = mode is None or (
            isinstance(mode, ast.Constant) and isinstance(mode.value, str) and not _WRITES & set(mode.value)
        )
        return call.args[0] if reads and call.args else None
    if name in joins().needs.files:
        return call.args[0] if call.args else None
    if isinstance(call.func, ast.Attribute) and call.func.attr in _FILE_METHODS and not call.args:
        return call.func.value
    return None


def _started(call: ast.Call) -> str:
    """Return the program that a call such as ``subprocess.run(["git", "log"])`` starts. Return an empty
    string if the call gives the program as a path, or computes the program's name.
    """
    words = call.args[0] if call.args else None
    first = words.elts[0] if isinstance(words, ast.List | ast.Tuple) and words.elts else None
    name = first.value if isinstance(first, ast.Constant) and isinstance(first.value, str) else ""
    return "" if "/" in name else name


def _argument(node: ast.expr, names: Names) -> str:
    """Return N as text for the expression ``sys.argv[N]``, or an empty string for any other expression."""
    if isinstance(node, ast.Call) and len(node.args) == 1 and names.dotted_name(node.func) == "pathlib.Path":
        node = node.args[0]
    if not isinstance(node, ast.Subscript) or names.dotted_name(node.value) != "sys.argv":
        return ""
    place = node.slice.value if isinstance(node.slice, ast.Constant) else None
    return str(place) if isinstance(place, int) and place > 0 else ""


def _gpu(call: ast.Call, name: str, names: Names, paths: Paths) -> str:
    """Return the source text of a call that fails without a GPU, or an empty string for any other call."""
    if not any(one.partition(".")[0] in {"torch", "jax"} for one in names.meanings.values()):
        return ""
    method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    given = {keyword.arg: keyword.value for keyword in call.keywords}
    first = call.args[0] if call.args else None
    if name == "torch.cuda.set_device" or (method == "cuda" and not name.startswith("torch.")):
        needed = True
    elif name in _GROUPS:
        needed = _is(given.get("backend", first), paths, "nccl")
    elif name == "jax.devices":
        needed = _is(given.get("backend", first), paths, "gpu", "cuda")
    else:
        device = given.get("device", first if method == "to" else None)
        needed = _is(device, paths, "cuda") and (method == "to" or name.startswith("torch."))
    return ast.unparse(call) if needed else ""


def _is(node: ast.expr | None, paths: Paths, *words: str) -> bool:
    """Return whether an expression is a string that equals one of the words. The string may end with a device
    number, as in ``cuda:0``.
    """
    return node is not None and (paths.path(node) or "").partition(":")[0] in words
