"""Change PyTorch training: add ``DistributedDataParallel`` and a sampler for each rank, and scale the
learning rate.
"""

import ast

from toolkit.program.adapt.source import argument, method
from toolkit.program.adapt.table import table
from toolkit.program.adapt.torch_data import quiet_bars, share_loops, split_alike
from toolkit.program.adapt.torch_model import wrap_models
from toolkit.program.adapt.work import Work


def backwards(work: Work) -> list[ast.Call]:
    """Return the ``backward`` calls of a script that imports PyTorch."""
    packages = {meaning.partition(".")[0] for meaning in work.source.names.meanings.values()}
    if "torch" not in packages:
        return []
    return [call for call in work.source.calls() if method(call) == "backward"]


def with_ddp(work: Work) -> list[str]:
    """Change a training script to use ``DistributedDataParallel``; return the import lines that the changed
    script needs.
    """
    backward = backwards(work)
    optimizers = [call for call in work.source.calls() if _is_optimizer(work, call)]
    for call in optimizers:
        _rates(work, call)
    for call in work.source.calls():
        _schedule(work, call)
        _device(work, call)
    found = wrap_models(work, optimizers, frozenset(backward))
    if not found:
        work.leave(
            backward[0],
            "adapt finds no optimizer that updates a model: wrap the model in `DistributedDataParallel` "
            "yourself",
        )
    imports = share_loops(work, backward)
    split_alike(work)
    quiet_bars(work)
    _single_device(work)
    return ["from torch.nn.parallel import DistributedDataParallel", *imports] if found else imports


def _is_optimizer(work: Work, call: ast.Call) -> bool:
    name = work.source.dotted_name(call.func)
    return name.startswith("torch.optim.") and name.rpartition(".")[2] in table().torch.optimizers


def _rates(work: Work, call: ast.Call) -> None:
    usual = table().torch.optimizers[work.source.dotted_name(call.func).rpartition(".")[2]]
    work.rate(call, "lr", 1, usual)
    for node in ast.walk(call):
        if isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                if isinstance(key, ast.Constant) and key.value == "lr":
                    work.multiply(value)


def _schedule(work: Work, call: ast.Call) -> None:
    name = work.source.dotted_name(call.func)
    if not name.startswith("torch.optim.lr_scheduler."):
        return
    for place, word in enumerate(table().torch.schedules.get(name.rpartition(".")[2], ()), start=1):
        if (value := argument(call, place, word)) is not None:
            work.multiply(value)
            work.did(call, f"multiplies the learning rate by `{work.size}`")
    steps = argument(call, 99, "total_steps", "steps_per_epoch")
    if isinstance(steps, ast.Constant) and steps.value is not None:
        what = "each rank runs fewer steps than the original script"
        work.leave(call, f"`{work.shown(call)}`: {what}; compute the number of steps with `len(loader)`")


def _device(work: Work, call: ast.Call) -> None:
    if work.source.dotted_name(call.func) in {"torch.nn.DataParallel", "torch.nn.parallel.DataParallel"}:
        work.leave(call, "remove DataParallel, because DistributedDataParallel replaces it")
    if work.source.dotted_name(call.func) in {"wandb.init", "mlflow.start_run"}:
        work.leave(call, f"`{work.shown(call)}` starts a run on every rank; make this call only on rank 0")


def _single_device(work: Work) -> None:
    """Replace ``cuda:0`` with ``cuda``, so that each rank uses its own GPU, not the node's first GPU."""
    for node in ast.walk(work.source.tree):
        if isinstance(node, ast.Constant) and node.value == "cuda:0" and work.once(node):
            text = work.source.of_node(node)
            work.edits.replace(work.source.start(node), work.source.end(node), text.replace("cuda:0", "cuda"))
            work.did(node, "uses the GPU of the rank")
