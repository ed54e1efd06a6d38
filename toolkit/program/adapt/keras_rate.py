"""Change the optimizer of ``model.compile``.

toolkit wraps the script's optimizer in Horovod's optimizer, and multiplies the learning rate by the number of
ranks. For a TensorFlow strategy, toolkit does not wrap the optimizer.
"""

import ast

from toolkit.program.adapt.source import argument, keyword, method
from toolkit.program.adapt.table import is_one_of, table
from toolkit.program.adapt.work import Work


def keras_name(work: Work) -> str:
    """Return the name by which the script refers to the Keras module, such as ``keras`` or ``tf.keras``."""
    meanings = work.source.names.meanings
    for module in ("tensorflow.keras", "tf_keras", "keras"):
        if found := next((name for name, meaning in meanings.items() if meaning == module), None):
            return found
    return f"{work.name_of('tensorflow', 'import tensorflow as tf')}.keras"


def is_optimizer(work: Work, node: ast.expr) -> bool:
    """Return whether an expression creates a Keras optimizer."""
    if not isinstance(node, ast.Call):
        return False
    name = work.source.dotted_name(node.func)
    known = {made.lower() for made, _ in table().keras.optimizers.values()}
    return name.startswith("keras.optimizers.") and name.rpartition(".")[2].lower() in known


def scale(work: Work, call: ast.Call) -> None:
    """Multiply the learning rate of an optimizer by the number of ranks. If the optimizer has a schedule of
    learning rates, multiply the schedule's initial learning rate.
    """
    if not work.once(call):
        return
    name = work.source.dotted_name(call.func).rpartition(".")[2].lower()
    usual = next(rate for made, rate in table().keras.optimizers.values() if made.lower() == name)
    value = argument(call, 0, "learning_rate", "lr")
    for source in work.flow.sources(value) if value is not None else ():
        schedule = work.source.dotted_name(source.func) if isinstance(source, ast.Call) else ""
        if schedule.startswith("keras.optimizers.schedules.") and isinstance(source, ast.Call):
            _schedule(work, source, schedule)
            return
        if isinstance(source, ast.Call) and work.flow.classes.get(schedule):
            work.leave(
                source,
                f"`{work.shown(source)}`: multiply the learning rates of your schedule by `{work.size}`",
            )
            return
    work.rate(call, "learning_rate", 0, usual)


def _schedule(work: Work, call: ast.Call, name: str) -> None:
    known = table().keras.schedules.get(name)
    rate = argument(call, 0, known[0]) if known else None
    if known is None or rate is None:
        work.leave(
            call,
            f"`{work.shown(call)}`: multiply the learning rates of this schedule by `{work.size}`, and "
            f"divide the numbers of steps by `{work.size}`",
        )
        return
    work.multiply(rate)
    work.did(call, f"multiplies the learning rate by `{work.size}`")
    if (steps := argument(call, 1, known[1])) is not None:
        work.divide(steps)
        work.did(call, "divides the schedule's number of steps by the number of ranks")


def optimizers(work: Work, calls: list[ast.Call], wrapper: str) -> None:
    """Change the optimizers of ``compile`` calls.

    ``wrapper`` is the name of Horovod's optimizer class, which averages gradients over the ranks. For a
    TensorFlow strategy, ``wrapper`` is empty.
    """
    for call in calls:
        given = keyword(call, "optimizer")
        value = given.value if given else argument(call, 0)
        if value is None:
            made = _make_optimizer(work, "rmsprop")
            work.edits.add_argument(call, f"optimizer={_wrap(made, wrapper)}")
            work.did(call, "averages gradients over the ranks")
            continue
        _optimizer(work, value, wrapper)
        _other_ways(work, call, by_horovod=bool(wrapper))


def _optimizer(work: Work, value: ast.expr, wrapper: str) -> None:
    if isinstance(value, ast.Constant) and str(value.value).lower() in table().keras.optimizers:
        made = _wrap(_make_optimizer(work, str(value.value).lower()), wrapper)
        work.edits.replace(work.source.start(value), work.source.end(value), made)
        work.did(value, f"averages gradients, and multiplies the learning rate by `{work.size}`")
        return
    found = work.flow.sources(value)
    if all(is_optimizer(work, one) for one in found):
        for one in found:
            if one in work.changed_nodes:
                continue
            work.changed_nodes.add(one)
            scale(work, one)  # type: ignore[arg-type]
            if wrapper:
                work.edits.wrap(one, f"{wrapper}(", ")")
                work.did(one, "averages gradients over the ranks")
        return
    if wrapper:
        work.edits.wrap(value, f"{wrapper}({keras_name(work)}.optimizers.get(", "))")
        work.did(value, "averages gradients over the ranks")
    work.leave(value, f"optimizer `{work.shown(value)}`: multiply its learning rate by `{work.size}`")


def _other_ways(work: Work, call: ast.Call, *, by_horovod: bool) -> None:
    for one in work.source.calls():
        if work.source.dotted_name(one.func).endswith("backend.set_value") and work.once(one):
            what = f"if this call sets the learning rate, multiply the rate by `{work.size}`"
            work.leave(one, f"`{work.shown(one)}`: {what}")
    compiles = method(call) == "compile" and keyword(call, "jit_compile")
    if by_horovod and compiles and work.once(call):
        work.leave(call, "remove `jit_compile`: XLA cannot compile Horovod's averaging of gradients")


def _make_optimizer(work: Work, name: str) -> str:
    made, rate = table().keras.optimizers[name]
    return f"{keras_name(work)}.optimizers.{made}({rate} * {work.size})"


def _wrap(text: str, wrapper: str) -> str:
    return f"{wrapper}({text})" if wrapper else text


def is_model(work: Work, node: ast.expr) -> bool:
    """Return whether an expression may be a Keras model."""
    known = table().keras
    for source in work.flow.sources(node):
        if not isinstance(source, ast.Call):
            continue
        name = work.source.dotted_name(source.func)
        klass = work.flow.classes.get(name)
        bases = [work.source.dotted_name(base) for base in klass.bases] if klass else []
        if is_one_of(name, known.models) or any(is_one_of(base, known.bases) for base in bases):
            return True
    return False


def is_compile(work: Work, call: ast.Call) -> bool:
    """Return whether a call is the ``compile`` method of a Keras model."""
    if method(call) != "compile" or is_one_of(
        work.source.dotted_name(call.func), ("re.*", "torch.*", "regex.*")
    ):
        return False
    if any(keyword(call, name) for name in ("optimizer", "loss", "metrics")):
        return True
    return isinstance(call.func, ast.Attribute) and is_model(work, call.func.value)
