"""Divide the training data of ``model.fit`` and of TensorFlow loops among the ranks."""

import ast

from toolkit.program.adapt.source import argument, keyword, method
from toolkit.program.adapt.table import is_one_of, table
from toolkit.program.adapt.work import Work

_ARRAYS = (
    "def shard(data):",
    '\t"""Return this rank\'s part of the samples; all ranks get the same number of samples."""',
    "\trank, size = RANK, SIZE",
    "\treturn tf.nest.map_structure(lambda a: a[rank : len(a) // size * size : size], data)",
)
_DATASETS = (
    "def shard_dataset(data):",
    '\t"""Return this rank\'s part of a data set; all ranks get the same number of elements."""',
    "\tcount = data.cardinality()",
    "\tif count > 0:",
    "\t\tdata = data.take(count // SIZE * SIZE)",
    "\treturn data.shard(SIZE, RANK)",
)


def share_fit(work: Work, fit: ast.Call) -> None:
    """Divide the data of one ``fit`` call among the ranks."""
    x, y = argument(fit, 0, "x"), argument(fit, 1, "y")
    if x is None:
        work.leave(
            fit,
            f"`{work.shown(fit)}`: adapt cannot find the training data, so every rank trains on all data",
        )
        return
    if y is not None and not (isinstance(y, ast.Constant) and y.value is None):
        weights = keyword(fit, "sample_weight")
        for one in (x, y, *([weights.value] if weights else [])):
            share_array(work, one)
        work.did(fit, "each rank trains on its part of the data")
    elif is_dataset(work, x):
        share_dataset(work, x)
        _steps(work, fit)
    elif _is_generator(work, x):
        if keyword(fit, "steps_per_epoch") is None:
            work.edits.add_argument(fit, f"steps_per_epoch=len({work.source.of_node(x)}) // {work.size}")
        _steps(work, fit)
        work.did(fit, "each rank takes only a part of the generator's batches in each epoch")
    else:
        work.leave(
            x, f"adapt does not know what `{work.shown(x)}` is, so every rank trains on all of the data"
        )


def share_array(work: Work, node: ast.expr) -> None:
    """Replace an array with this rank's part of the array."""
    if work.once(node):
        work.edits.wrap(node, f"{array_helper(work)}(", ")")


def array_helper(work: Work) -> str:
    """Add to the script a helper function that divides arrays among the ranks, and return the function's
    name.
    """
    return _helper(work, "shard", _ARRAYS)


def _helper(work: Work, name: str, lines: tuple[str, ...]) -> str:
    known = work.free_name(name)
    tensorflow = work.name_of("tensorflow", "import tensorflow as tf")
    head = f"def {known}(data):"
    if head not in work.helpers:
        body = [line.replace("RANK", work.rank).replace("SIZE", work.size) for line in lines[1:]]
        work.helpers += [head, *(line.replace("tf.", f"{tensorflow}.") for line in body), "", ""]
    return known


def is_dataset(work: Work, node: ast.expr) -> bool:
    """Return whether an expression may be a ``tf.data.Dataset``."""
    return any(work.source.dotted_name(root.func).startswith(_MAKERS) for root in roots(work, node))


_MAKERS = (
    "tensorflow.data.",
    "tensorflow_datasets.load",
    "keras.utils.image_dataset",
    "keras.utils.text_dataset",
    "keras.preprocessing.image_dataset",
    "keras.preprocessing.text_dataset",
)


def roots(work: Work, node: ast.expr) -> list[ast.Call]:
    """Return the calls that create a data set, such as ``from_tensor_slices``. The result does not include
    method calls that change the data set later.
    """
    return [calls[0] for calls in chains(work, node)]


def chains(work: Work, node: ast.expr, depth: int = 0) -> list[list[ast.Call]]:
    """Return the chains of calls that build a data set, such as ``from_tensor_slices``, ``map`` and
    ``batch``. Each chain begins with a call that creates the data set. If several calls may create the data
    set, the result has a chain for each of these calls.
    """
    found: list[list[ast.Call]] = []
    for source in work.flow.sources(node):
        if not isinstance(source, ast.Call):
            continue
        if work.source.dotted_name(source.func).startswith(_MAKERS) or not isinstance(
            source.func, ast.Attribute
        ):
            found.append([source])
        elif depth < 20:
            before = chains(work, source.func.value, depth + 1)
            found += [[*one, source] for one in before] or [[source]]
    return found


def share_dataset(work: Work, node: ast.expr) -> None:
    """Divide a data set among the ranks: change the call that creates the data set.

    If other code may need the complete data set, or the script does not create it with a method of
    ``tf.data.Dataset``, divide the data set at ``node``, where ``fit`` or the training loop uses it.
    """
    helper = _helper(work, "shard_dataset", _DATASETS)
    made = chains(work, node)
    whole = _whole(work)
    alone = all(_is_alone(work, chain[0]) and chain[0] not in whole for chain in made)
    shared = made and all(
        work.source.dotted_name(c[0].func).startswith("tensorflow.data.Dataset.") for c in made
    )
    if alone and shared:
        for chain in made:
            if work.once(chain[0]):
                work.edits.wrap(chain[0], f"{helper}(", ")")
                work.did(chain[0], "each rank gets its part of the data set")
    elif work.once(node):
        work.edits.wrap(node, f"{helper}(", ")")
        work.did(node, "each rank gets its part of the batches")
    for chain in made:
        _check_chain(work, chain)


def _whole(work: Work) -> set[ast.Call]:
    """Return the calls that create data sets for ``validation_data``, ``evaluate`` or ``predict``. toolkit
    does not divide these data sets, because each rank needs all samples.
    """
    found: set[ast.Call] = set()
    for call in work.source.calls():
        values = [k.value for k in call.keywords if k.arg == "validation_data"]
        if method(call) in {"evaluate", "predict"}:
            values += [one for one in (argument(call, 0, "x"),) if one is not None]
        for value in values:
            found.update(roots(work, value))
    return found


def _is_alone(work: Work, call: ast.Call) -> bool:
    """Return whether a call is outside all functions, or in a function that has at most one caller."""
    function = work.source.function(call)
    return function is None or len(work.flow.calls_of(function)) <= 1


def _check_chain(work: Work, chain: list[ast.Call]) -> None:
    name = work.source.dotted_name(chain[0].func)
    unknown = [
        c for c in chain if method(c) in {"filter", "flat_map", "from_generator", "unbatch", "interleave"}
    ]
    files = name.startswith("tensorflow.data.") and name.rpartition(".")[2] not in {
        "from_tensor_slices", "from_tensors", "range", "zip", "load", "random",
    }  # fmt: skip
    if (unknown or files) and work.once(chain[-1]):
        what = "adapt does not know the number of samples; make sure that all ranks run the same number of"
        work.leave((unknown or chain)[0], f"{what} batches, for example with `steps_per_epoch` of `fit`")


def _is_generator(work: Work, node: ast.expr) -> bool:
    for source in work.flow.sources(node):
        if not isinstance(source, ast.Call):
            continue
        if method(source).startswith("flow"):
            return True
        klass = work.flow.classes.get(work.source.dotted_name(source.func))
        bases = [work.source.dotted_name(base) for base in klass.bases] if klass else []
        if any(is_one_of(base, table().keras.generators) for base in bases):
            return True
    return False


def _steps(work: Work, fit: ast.Call) -> None:
    given = keyword(fit, "steps_per_epoch")
    if given is not None and not (isinstance(given.value, ast.Constant) and given.value.value is None):
        work.divide(given.value)
        work.did(fit, "`steps_per_epoch` counts the batches of one rank")
