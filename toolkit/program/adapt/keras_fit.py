"""Change training with ``model.fit`` for Horovod or for TensorFlow's MultiWorkerMirroredStrategy."""

import ast

from toolkit.program.adapt.keras_callbacks import callbacks
from toolkit.program.adapt.keras_data import chains, is_dataset, share_fit
from toolkit.program.adapt.keras_rate import is_compile, is_model, optimizers
from toolkit.program.adapt.source import argument, keyword, method
from toolkit.program.adapt.table import table
from toolkit.program.adapt.work import Work


def fits(work: Work) -> list[ast.Call]:
    """Return the ``fit`` calls that train a Keras model."""
    found = []
    for call in work.source.calls():
        if method(call) in {"fit", "fit_generator"} and isinstance(call.func, ast.Attribute):
            receiver = call.func.value
            words = any(keyword(call, name) for name in table().keras.fit)
            model = is_model(work, receiver)
            if isinstance(receiver, ast.Call) or (work.flow.function_of(call) and not model):
                continue
            if words or model:
                found.append(call)
    return found


def compiles(work: Work) -> list[ast.Call]:
    """Return the ``compile`` calls of Keras models, which set the optimizer."""
    return [call for call in work.source.calls() if is_compile(work, call)]


def with_horovod(work: Work, trained: list[ast.Call], module: str) -> frozenset[ast.AST]:
    """Change training with ``fit`` for Horovod; return the calls that all ranks must run, not only rank 0."""
    optimizers(work, compiles(work), f"{module}.DistributedOptimizer")
    for call in trained:
        share_fit(work, call)
        callbacks(work, call, module)
    _silence(work, trained)
    return frozenset(trained)


def with_strategy(work: Work, trained: list[ast.Call]) -> frozenset[ast.AST]:
    """Change training with ``fit`` for a TensorFlow strategy; return the calls that all ranks must run."""
    optimizers(work, compiles(work), "")
    for call in trained:
        _batch(work, call)
        callbacks(work, call, "")
    _silence(work, trained)
    return frozenset(trained) | _save(work)


def _silence(work: Work, trained: list[ast.Call]) -> None:
    """Show the progress of training and evaluation only on rank 0."""
    for call in trained:
        work.only_first(call, "verbose", '"auto"', "0")
        work.did(call, "shows progress only on rank 0")
    for call in work.source.calls():
        tests = method(call) in {"evaluate", "predict"} and isinstance(call.func, ast.Attribute)
        if tests and is_model(work, call.func.value):  # type: ignore[attr-defined]
            work.only_first(call, "verbose", '"auto"', "0")
            work.did(call, "shows progress only on rank 0")


def _batch(work: Work, fit: ast.Call) -> None:
    """Multiply the batch size by the number of ranks, because the ranks share each batch."""
    x = argument(fit, 0, "x")
    given = argument(fit, 2, "batch_size")
    if x is not None and is_dataset(work, x):
        batches = [
            call for chain in chains(work, x) for call in chain if method(call) in {"batch", "padded_batch"}
        ]
        sizes = [one for call in batches if (one := argument(call, 0, "batch_size")) is not None]
        for one in sizes:
            work.multiply(one)
        if batches:
            work.did(batches[-1], "multiplies the batch size, because the ranks share each batch")
        else:
            work.leave(
                x,
                f"`{work.shown(x)}`: multiply the batch size by `{work.size}`, because the ranks share each "
                "batch",
            )
        steps = keyword(fit, "steps_per_epoch")
        if steps is not None:
            work.divide(steps.value)
    elif given is not None:
        work.multiply(given)
        work.did(fit, "multiplies the batch size, because the ranks share each batch")
    elif argument(fit, 1, "y") is not None:
        work.edits.add_argument(fit, f"batch_size=32 * {work.size}")
        work.did(fit, "multiplies the batch size, because the ranks share each batch")
    else:
        work.leave(
            fit,
            f"`{work.shown(fit)}`: multiply the batch size by `{work.size}`, because the ranks share each "
            "batch",
        )


def _save(work: Work) -> frozenset[ast.AST]:
    """Let all ranks save a model, because saving may need all ranks. Rank 0 saves to the script's path; the
    other ranks save to temporary folders.
    """
    found: set[ast.AST] = set()
    for call in work.source.calls():
        saves = method(call) in {"save", "save_weights", "export"} and isinstance(call.func, ast.Attribute)
        if saves and is_model(work, call.func.value):  # type: ignore[attr-defined]
            found.add(call)
            path = argument(call, 0, "filepath", "filepath_or_fid")
            if path is not None and work.once(path):
                work.edits.wrap(path, f"{work.path_helper}(", ")")
                work.did(call, "rank 0 saves to this path; the other ranks save to temporary folders")
    return frozenset(found)
