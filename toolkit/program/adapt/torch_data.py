"""Divide the data of a PyTorch training loop: give each rank a sampler, and each epoch a new order of
samples.
"""

import ast

from toolkit.program.adapt.edits import Unplaceable
from toolkit.program.adapt.flow import is_self
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
from toolkit.program.adapt.source import argument, keyword, method
from toolkit.program.adapt.work import Work

_SHARD = (
    "def {name}(data):",
    '\t"""Return this rank\'s part of the samples; all ranks get the same number of samples."""',
    "\trank, size = {rank}, {size}",
    "\treturn data[rank : len(data) // size * size : size]",
    "",
    "",
)


def share_loops(work: Work, backward: list[ast.Call]) -> list[str]:
    """Divide the data of training loops among the ranks. ``backward`` lists the ``backward()`` calls in these
    loops. Return the import lines that the changed script needs.
    """
    imports: list[str] = []
    for call in backward:
        loops = loops_around(work, call)
        leaves_early(work, loops)
        loop = batch_loop(work, call)
        if loop is None:
            work.leave(
                call, "adapt cannot find the loop over batches, so every rank trains on all of the data"
            )
        elif work.once(loop):
            imports += _share(work, loop, call)
    _lengths(work)
    return list(dict.fromkeys(imports))


def _share(work: Work, loop: ast.For, call: ast.Call) -> list[str]:
    items = loop_source(loop)
    loaders = [one for one in work.flow.sources(items) if isinstance(one, ast.Call) and _is_loader(work, one)]
    if loaders:
        done = [_sampler(work, loader) for loader in loaders]
        if all(done):
            _epochs(work, loop, items, call)
        return ["from torch.utils.data.distributed import DistributedSampler"] if any(done) else []
    if is_count(loop) and (names := arrays_of(work, loop)):
        helper = work.free_name("shard")
        if share_arrays(work, names, helper):
            work.helpers += [line.format(name=helper, rank=work.rank, size=work.size) for line in _SHARD]
            return []
    what = f"adapt does not know where `{work.shown(items)}` takes its batches from"
    work.leave(loop, f"{what}, so every rank trains on all of the data")
    return []


def _is_loader(work: Work, call: ast.Call) -> bool:
    return work.source.dotted_name(call.func).endswith(".DataLoader")


def _sampler(work: Work, loader: ast.Call) -> bool:
    """Give a ``DataLoader`` a sampler for this rank's part of the data. Return whether the ``DataLoader`` now
    has a sampler.
    """
    if not work.once(loader):
        return loader in work.changed_nodes
    data = argument(loader, 0, "dataset")
    name = None if data is None or _own_way(work, loader, data) else _name_data(work, loader, data)
    if name is None:
        return False
    _put_sampler(work, loader, name)
    work.changed_nodes.add(loader)
    work.did(loader, "each rank gets its part of the samples")
    shuffle = keyword(loader, "shuffle")
    function = work.source.function(loader)
    several = function is not None and len(work.flow.calls_of(function)) > 1
    if several and (shuffle is None or isinstance(shuffle.value, ast.Constant)):
        work.leave(
            loader,
            "several lines call the function that creates this loader; if the function also creates loaders "
            "for test data, use the sampler only for training data",
        )
    return True


def _own_way(work: Work, loader: ast.Call, data: ast.expr) -> bool:
    """Return whether the script itself chooses the samples of a ``DataLoader``, for example with a sampler or
    an ``IterableDataset``. If so, add a note for the user.
    """
    own = keyword(loader, "sampler") or keyword(loader, "batch_sampler")
    if own is not None or len(loader.args) > 2:
        what = f"the argument `{own.arg}`" if own is not None else "the arguments"
        work.leave(
            loader, f"`{work.shown(loader)}`: change {what} so that each rank gets its part of the samples"
        )
        return True
    if _is_stream(work, data):
        work.leave(
            loader, f"`{work.shown(data)}` is an IterableDataset: let each rank read only a part of the data"
        )
        return True
    return False


def _put_sampler(work: Work, loader: ast.Call, name: str) -> None:
    shuffle = keyword(loader, "shuffle")
    more = next((one for one in loader.keywords if one.arg is None), None)
    if shuffle is None and more is not None:
        # In DataLoader(data, **options), the options may contain "shuffle", which cannot be combined with a
        # sampler. Set "shuffle" to None.
        after = f', "sampler": DistributedSampler({name}), "shuffle": None}}'
        work.edits.wrap(more.value, "{**", after)
    elif shuffle is None:
        work.edits.add_argument(loader, f"sampler=DistributedSampler({name}, shuffle=False)")
    else:
        made = f"sampler=DistributedSampler({name})"
        if not isinstance(shuffle.value, ast.Constant):
            made = f"{made} if {work.source.of_node(shuffle.value)} else None"
        elif not shuffle.value.value:
            made = f"sampler=DistributedSampler({name}, shuffle=False)"
        work.edits.replace(work.source.start(shuffle), work.source.end(shuffle), made)


def _is_stream(work: Work, data: ast.expr) -> bool:
    for source in work.flow.sources(data):
        if isinstance(source, ast.Call) and (
            klass := work.flow.classes.get(work.source.dotted_name(source.func))
        ):
            return any(work.source.dotted_name(base).endswith("IterableDataset") for base in klass.bases)
    return False


def _name_data(work: Work, loader: ast.Call, data: ast.expr) -> str | None:
    """Return the source text that refers to the data set of a ``DataLoader``, such as ``train_set``.

    If the call of ``DataLoader`` creates the data set, insert a line before the call. This line assigns the
    data set to a variable. Return ``None`` if toolkit cannot insert this line.
    """
    if isinstance(data, ast.Name | ast.Subscript) or is_self(data):
        return work.source.of_node(data)
    name = work.free_name("train_set")
    try:
        work.edits.before(work.source.statement(loader), [f"{name} = {work.source.of_node(data)}"])
    except Unplaceable:
        what = "shares a line with another statement, so adapt adds no sampler: every rank trains on all data"
        work.leave(loader, f"`{work.shown(loader)}` {what}")
        return None
    work.edits.replace(work.source.start(data), work.source.end(data), name)
    return name


def _epochs(work: Work, loop: ast.For, items: ast.expr, call: ast.Call) -> None:
    """Insert a call of ``set_epoch``, which gives each epoch a new order of samples. If toolkit cannot insert
    the call, add a note for the user.
    """
    loops = loops_around(work, call)
    outer = loops[loops.index(loop) + 1 :]
    epochs = next((one for one in outer if isinstance(one, ast.For) and is_count(one)), None)
    if epochs is None:
        if outer:
            work.leave(
                outer[0],
                "call `set_epoch` of the sampler in each epoch, so that each epoch has a new order of "
                "samples",
            )
        return
    place = _step_within(work, epochs, loop)
    loader = name_at(work, items, place) if place is not None else ""
    if place is None or not loader or not isinstance(epochs.target, ast.Name):
        work.leave(
            epochs,
            "call `set_epoch` of the sampler in each epoch, so that each epoch has a new order of samples",
        )
        return
    number = epochs.target.id
    if number == "_":
        number = work.free_name("epoch")
        work.edits.replace(work.source.start(epochs.target), work.source.end(epochs.target), number)
    work.before(place, [f"{loader}.sampler.set_epoch({number})"], "gives each epoch a new order of samples")


def _step_within(work: Work, epochs: ast.For, loop: ast.For) -> ast.stmt | None:
    """In the body of the loop over epochs, find the statement that runs the loop over batches. If no
    statement runs this loop, return ``None``.
    """
    wanted = frozenset[ast.AST]({loop})
    for statement in epochs.body:
        if work.flow.reaches(statement, wanted):
            return statement
    return None


def _lengths(work: Work) -> None:
    """Replace ``len(loader.dataset)`` with ``len(loader.sampler)``, the number of this rank's samples."""
    for call in work.source.calls():
        value = call.args[0] if len(call.args) == 1 else None
        if (
            work.source.dotted_name(call.func) != "len"
            or not isinstance(value, ast.Attribute)
            or value.attr != "dataset"
        ):
            continue
        if any(source in work.changed_nodes for source in work.flow.sources(value.value)):
            end = work.source.end(value)
            work.edits.replace(end - len("dataset"), end, "sampler")
            work.did(call, "counts the samples of this rank")


def split_alike(work: Work) -> None:
    """If the script splits data at random without a seed, add a fixed seed, so that all ranks split the data
    in the same way.
    """
    names = {work.source.dotted_name(call.func) for call in work.source.calls()}
    seeded = {"torch.manual_seed", "keras.utils.set_random_seed", "numpy.random.seed"} & names
    for call in work.source.calls():
        name = work.source.dotted_name(call.func)
        if (
            name.endswith("train_test_split")
            and not keyword(call, "random_state")
            and "numpy.random.seed" not in seeded
        ):
            work.edits.add_argument(call, "random_state=0")
            work.did(call, "all ranks split the data in the same way")
        if (
            name.endswith("data.random_split")
            and not keyword(call, "generator")
            and "torch.manual_seed" not in seeded
        ):
            work.edits.add_argument(call, "generator=torch.Generator().manual_seed(0)")
            work.did(call, "all ranks split the data in the same way")


def quiet_bars(work: Work) -> None:
    """Show progress bars only on rank 0."""
    for call in work.source.calls():
        name = call.func.id if isinstance(call.func, ast.Name) else method(call)
        if name in {"tqdm", "trange"} and not keyword(call, "disable"):
            work.edits.add_argument(call, f"disable={work.rank} != 0")
            work.did(call, "shows progress only on rank 0")
