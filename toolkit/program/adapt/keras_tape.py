"""Change loops with ``GradientTape``: average gradients, start all ranks with equal weights, and divide the
data.
"""

import ast

from toolkit.program.adapt.keras_data import array_helper, is_dataset, share_dataset
from toolkit.program.adapt.keras_rate import is_optimizer, scale
from toolkit.program.adapt.loops import (
    arrays_of,
    batch_loop,
    is_count,
    leaves_early,
    loop_source,
    loops_around,
    name_at,
    share_arrays,
)
from toolkit.program.adapt.source import argument, method
from toolkit.program.adapt.work import Work

_BROADCAST = (
    "def {name}(models, optimizers):",
    '\t"""After the first step, which creates the weights, give all ranks the weights of rank 0."""',
    '\tif not hasattr({name}, "done"):',
    "\t\tfor one in (*models, *optimizers):",
    "\t\t\tvariables = one.variables() if callable(one.variables) else one.variables",
    "\t\t\t{module}.broadcast_variables(variables, root_rank=0)",
    "\t\t{name}.done = True",
    "",
    "",
)


def gradients(work: Work) -> list[ast.Call]:
    """Return the ``tape.gradient`` calls whose gradients the script applies to weights, except calls in
    ``train_step`` methods that ``fit`` runs.
    """
    tapes = set()
    for node in ast.walk(work.source.tree):
        if isinstance(node, ast.With):
            for item in node.items:
                call = item.context_expr
                made = (
                    isinstance(call, ast.Call)
                    and work.source.dotted_name(call.func) == "tensorflow.GradientTape"
                )
                if made and isinstance(item.optional_vars, ast.Name):
                    tapes.add(item.optional_vars.id)
    return [call for call in work.source.calls() if method(call) == "gradient" and _trains(work, call, tapes)]


def _trains(work: Work, call: ast.Call, tapes: set[str]) -> bool:
    tape = call.func.value if isinstance(call.func, ast.Attribute) else None
    function = work.source.function(call)
    if not isinstance(tape, ast.Name) or tape.id not in tapes:
        return False
    by_keras = function is not None and function.name == "train_step" and work.flow.is_method(function)
    if by_keras and function is not None and not work.flow.calls_of(function):
        return False  # average_steps() changes this train_step(), which fit() calls
    wanted = argument(call, 1, "sources")
    return (wanted is not None and "variables" in work.source.of_node(wanted)) or _change_apply(work, call)


def _change_apply(work: Work, call: ast.Call) -> bool:
    statement = work.source.statement(call)
    if not isinstance(statement, ast.Assign) or not isinstance(statement.targets[0], ast.Name):
        return False
    name = statement.targets[0].id
    return any(
        method(other) == "apply_gradients"
        and name in {n.id for n in ast.walk(other) if isinstance(n, ast.Name)}
        for other in work.source.calls(work.source.function(call) or work.source.tree)
    )


def average_steps(work: Work, module: str) -> bool:
    """Average the gradients in ``train_step`` methods that ``fit`` runs. Return whether toolkit changed a
    ``train_step`` method.

    toolkit changes ``train_step`` methods, because Horovod's optimizer does not average gradients in
    ``apply_gradients``.
    """
    found = False
    for call in work.source.calls():
        function = work.source.function(call)
        by_fit = function is not None and function.name == "train_step" and work.flow.is_method(function)
        if by_fit and method(call) == "gradient" and function and not work.flow.calls_of(function):
            _average(work, call, module)
            found = True
    return found


def _average(work: Work, call: ast.Call, module: str) -> None:
    tape = call.func.value  # type: ignore[attr-defined]
    work.edits.wrap(tape, f"{module}.DistributedGradientTape(", ")")
    work.did(call, "averages gradients over the ranks")


def adapt_tapes(work: Work, tape_calls: list[ast.Call], module: str) -> frozenset[ast.AST]:
    """Change loops with ``GradientTape`` for Horovod; return the calls that all ranks must run."""
    for call in tape_calls:
        _average(work, call, module)
    applied = [call for call in work.source.calls() if method(call) in {"apply_gradients", "minimize"}]
    for call in applied:
        _rate(work, call)
        if method(call) == "minimize":
            what = "adapt cannot change `minimize`; use `tape.gradient` and `apply_gradients` instead"
            work.leave(call, f"`{work.shown(call)}`: {what}")
    for call in tape_calls:
        _data(work, call)
    _equal_weights(work, tape_calls, applied, module)
    return frozenset(tape_calls)


def _rate(work: Work, call: ast.Call) -> None:
    optimizer = call.func.value  # type: ignore[attr-defined]
    for source in work.flow.sources(optimizer):
        if is_optimizer(work, source):
            scale(work, source)  # type: ignore[arg-type]
        elif work.once(source):
            shown = work.shown(optimizer)
            work.leave(call, f"optimizer `{shown}`: multiply its learning rate by `{work.size}`")


def _data(work: Work, call: ast.Call) -> None:
    loops = loops_around(work, call)
    leaves_early(work, loops)
    loop = batch_loop(work, call)
    if loop is None:
        work.leave(call, "adapt cannot find the loop over batches, so every rank trains on all of the data")
        return
    if not work.once(loop):
        return
    items = loop_source(loop)
    if is_dataset(work, items):
        share_dataset(work, items)
    elif (
        not is_count(loop)
        or not (names := arrays_of(work, loop))
        or not share_arrays(work, names, array_helper(work))
    ):
        work.leave(
            loop,
            f"adapt does not know what `{work.shown(items)}` is, so every rank trains on all of the data",
        )


def _equal_weights(work: Work, tape_calls: list[ast.Call], update_calls: list[ast.Call], module: str) -> None:
    """Insert lines that copy the weights of rank 0 to all ranks after the first step of the training loop."""
    place = _step_of_loop(work, tape_calls[-1])
    models = _texts(work, [m for call in tape_calls for m in _models(call)], place)
    optimizers = _texts(work, [call.func.value for call in update_calls], place)  # type: ignore[attr-defined]
    if place is None or not models or models[-1] == "" or optimizers[-1:] == [""]:
        what = "adapt cannot find the model or the optimizer of the training loop"
        work.leave(tape_calls[-1], f"{what}: copy the weights of rank 0 to all ranks after the first step")
        return
    name = work.free_name("broadcast_once")
    line = f"{name}([{', '.join(models)}], [{', '.join(optimizers)}])"
    if work.after(place, [line], "starts all ranks with the weights of rank 0"):
        work.helpers += [one.format(name=name, module=module) for one in _BROADCAST]


def _models(call: ast.Call) -> list[ast.expr]:
    wanted = argument(call, 1, "sources")
    nodes = ast.walk(wanted) if wanted is not None else ()
    return [
        one.value
        for one in nodes
        if isinstance(one, ast.Attribute)
        and one.attr in {"trainable_variables", "trainable_weights", "variables", "weights"}
    ]


def _step_of_loop(work: Work, call: ast.AST) -> ast.stmt | None:
    """Return a statement in the body of a training loop. The statement contains ``call``, or runs ``call``
    through functions. Return ``None`` if toolkit finds no such statement.

    The search ignores loops inside functions with ``@tf.function``.
    """
    at: ast.AST | None = call
    for _ in range(8):
        if at is None:
            return None
        function = work.source.function(at)
        graph = function is not None and any(
            "function" in work.source.dotted_name(_callee(d)) for d in function.decorator_list
        )
        inner: ast.AST = at
        for up in work.source.around(at):
            if up is function:
                break
            if isinstance(up, ast.For | ast.While) and not graph and isinstance(inner, ast.stmt):
                return inner
            inner = (
                up
                if (isinstance(up, ast.stmt) and not isinstance(up, ast.For | ast.While))
                or isinstance(up, ast.For | ast.While)
                else inner
            )
        calls = work.flow.calls_of(function) if function is not None else []
        at = calls[0] if calls else None
    return None


def _callee(node: ast.expr) -> ast.expr:
    return node.func if isinstance(node, ast.Call) else node


def _texts(work: Work, nodes: list[ast.expr], place: ast.stmt | None) -> list[str]:
    """Return the names, such as ``self.model``, by which a line at ``place`` can refer to the values of
    ``nodes``. A name is empty if the line cannot refer to the value. The result contains no duplicates.
    """
    return list(dict.fromkeys(name_at(work, node, place) for node in nodes)) if place is not None else []
