"""Wrap PyTorch models in ``DistributedDataParallel`` (DDP), and add ``.module`` where the script needs it."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from toolkit.program.adapt.flow import is_self
from toolkit.program.adapt.source import Scope, argument, method
from toolkit.program.adapt.table import is_one_of, table
from toolkit.program.adapt.work import Work

_WHOLE = ("torch.save", "torch.jit.*", "torch.onnx.export", "copy.deepcopy", "copy.copy")
_API = frozenset({"state_dict", "load_state_dict"})


@dataclass(frozen=True, slots=True)
class _Key:
    """A variable or an attribute that may hold a model: a name in a scope, or an attribute of ``self`` in a
    class.
    """

    scope: Scope
    name: str


@dataclass(slots=True)
class _Wrapped:
    """The variables and attributes that hold models wrapped in DDP.

    ``keys`` maps each variable or attribute to a function and a line number. In this function, the variable
    or attribute holds the wrapped model after this line. For a line outside functions, the function is
    ``None``. For a parameter that receives a wrapped model, the function is ``None`` and the line is 0.
    """

    keys: dict[_Key, tuple[ast.AST | None, int]] = field(default_factory=dict)
    mixed: set[_Key] = field(default_factory=set)
    """Function parameters that receive both models wrapped in DDP and unwrapped models."""


def wrap_models(work: Work, optimizers: list[ast.Call], backward: frozenset[ast.AST]) -> bool:
    """Wrap in DDP each model whose parameters an optimizer updates; return whether toolkit found such a
    model.
    """
    places: dict[_Key, tuple[ast.stmt, ast.expr]] = {}
    for call in optimizers:
        for model in _models(work, call):
            for key, statement, node in _places(work, model, work.source.statement(call), backward):
                kept = places.get(key)
                if kept is None or kept[0].lineno < statement.lineno:
                    places[key] = (statement, node)
    wrapped = _Wrapped()
    more = ", broadcast_buffers=False" if len(places) > 1 else ""
    for key, (statement, node) in places.items():
        text = work.source.of_node(node)
        last = _last_move(work, key, statement)
        if work.after(
            last,
            [f"{text} = DistributedDataParallel({text}{more})"],
            "averages gradients over the ranks",
            rank=len(wrapped.keys),
        ):
            wrapped.keys[key] = (work.source.function(last), last.end_lineno or last.lineno)
    _spread(work, wrapped)
    _inner_uses(work, wrapped, backward)
    return bool(places)


def _models(work: Work, call: ast.Call) -> list[ast.expr]:
    """Return the models whose parameters a call such as ``SGD(model.parameters())`` passes to
    an optimizer.
    """
    found: list[ast.expr] = []
    values = [*call.args[:1], *(k.value for k in call.keywords if k.arg in {"params", None})]
    for value in values:
        for source in work.flow.sources(value):
            calls = [one for one in ast.walk(source) if isinstance(one, ast.Call)]
            given = [one.func for one in calls if method(one) in {"parameters", "named_parameters"}]
            found += [_root(one.value) for one in given if isinstance(one, ast.Attribute)]
    return found


def _root(node: ast.expr) -> ast.expr:
    """Return the model that contains a submodule: ``model`` for ``model.fc``, ``self.model`` for
    ``self.model.fc``.
    """
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Call) and not is_self(node):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node


def _key(work: Work, node: ast.expr) -> _Key | None:
    if isinstance(node, ast.Name) and node.id != "self" and (scope := work.flow.bound_in(node)):
        return _Key(scope, node.id)
    if isinstance(node, ast.Attribute) and is_self(node) and (klass := work.source.klass(node)):
        return _Key(klass, node.attr)
    return None


def _places(
    work: Work, model: ast.expr, location: ast.stmt, backward: frozenset[ast.AST], depth: int = 0
) -> Iterator[tuple[_Key, ast.stmt, ast.expr]]:
    """Yield the places where toolkit wraps a model. A place has three parts: the variable or attribute that
    contains the model, the statement after which toolkit inserts the wrapping line, and the expression that
    this line wraps.

    ``location`` is the statement in which the script uses the model.
    """
    key = _key(work, model)
    if key is None or depth > 5:
        work.leave(
            model,
            f"`{work.shown(model)}`: adapt cannot find a variable with this model; wrap the model in "
            "`DistributedDataParallel` yourself",
        )
        return
    function = work.flow.is_parameter(model)
    if function is None:
        bound = work.flow.bindings(model)
        same = isinstance(key.scope, ast.ClassDef) or key.scope is work.source.scope(location)
        yield (
            key,
            (location if same or not bound else max((b.statement for b in bound), key=lambda s: s.lineno)),
            model,
        )
        return
    for klass_key, statement, target in _kept_parameters(work, function, key.name):
        yield klass_key, max(statement, location, key=lambda s: s.lineno), target
        return
    if function.name != "__init__" and work.flow.reaches(function, backward):
        yield key, location, model
        return
    for call in work.flow.calls_of(function):
        value = work.flow.argument_of(call, function, key.name)
        if value is not None:
            yield from _places(work, _root(value), work.source.statement(call), backward, depth + 1)


def _kept_parameters(work: Work, function: ast.AST, name: str) -> Iterator[tuple[_Key, ast.stmt, ast.expr]]:
    """Yield a tuple for each assignment of a method's parameter ``name`` to an attribute of ``self``. The
    tuple contains the attribute, the assignment, and the assignment's target.
    """
    klass = work.source.parents[function]
    for node in ast.walk(function) if isinstance(klass, ast.ClassDef) else ():
        if isinstance(node, ast.Assign) and is_self(target := node.targets[0]):
            value = _root(node.value)
            if isinstance(value, ast.Name) and value.id == name:
                yield _Key(klass, target.attr), node, target  # type: ignore[arg-type,attr-defined]


def _last_move(work: Work, key: _Key, statement: ast.stmt) -> ast.stmt:
    """Return the last statement that moves or converts a model, such as ``model.cuda()``, in the block of
    ``statement``. Return ``statement`` if no later statement moves or converts the model.
    """
    last = statement
    block = work.source.block(statement)
    for one in block[block.index(statement) :]:
        value = one.value if isinstance(one, ast.Expr | ast.Assign) else None
        moves = isinstance(value, ast.Call) and method(value) in table().torch.moves
        if moves and _key(work, value.func.value) == key:  # type: ignore[union-attr]
            last = one
    return last


def _spread(work: Work, wrapped_models: _Wrapped) -> None:
    """Add to ``wrapped_models`` the function parameters, attributes and variables to which the script passes
    or assigns a wrapped model.
    """
    calls = list(work.source.calls())
    while True:
        count = len(wrapped_models.keys) + len(wrapped_models.mixed)
        for call in calls:
            function = work.flow.function_of(call)
            if function is not None:
                _into_parameters(work, wrapped_models, call, function)
        for node in ast.walk(work.source.tree):
            if (
                isinstance(node, ast.Assign)
                and len(node.targets) == 1
                and _holds(work, wrapped_models, node.value)
            ):
                target = _key(work, node.targets[0])
                if target is not None and target not in wrapped_models.keys:
                    wrapped_models.keys[target] = (work.source.function(node), node.end_lineno or node.lineno)
        if count == len(wrapped_models.keys) + len(wrapped_models.mixed):
            return


def _into_parameters(
    work: Work, wrapped_models: _Wrapped, call: ast.Call, function: ast.FunctionDef | ast.AsyncFunctionDef
) -> None:
    for parameter in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs):
        key = _Key(function, parameter.arg)
        value = work.flow.argument_of(call, function, parameter.arg)
        if value is None or (
            key in wrapped_models.keys
            and key not in wrapped_models.mixed
            and wrapped_models.keys[key][0] is function
            and wrapped_models.keys[key][1] > 0
        ):
            continue
        if _is_wrapped(work, wrapped_models, value):
            wrapped_models.keys.setdefault(key, (None, 0))
            others = [
                work.flow.argument_of(one, function, parameter.arg) for one in work.flow.calls_of(function)
            ]
            if any(one is not None and not _is_wrapped(work, wrapped_models, one) for one in others):
                wrapped_models.mixed.add(key)
            else:
                wrapped_models.mixed.discard(key)


def _is_wrapped(work: Work, wrapped_models: _Wrapped, node: ast.expr) -> bool:
    return (key := _wrapped_key(work, wrapped_models, node)) is not None and key in wrapped_models.keys


def _holds(work: Work, wrapped_models: _Wrapped, node: ast.expr) -> bool:
    """Return whether an expression evaluates to a wrapped model: the model's name, or a call of a function
    that returns the model.
    """
    function = work.flow.function_of(node) if isinstance(node, ast.Call) else None
    if function is None or function.name == "__init__":
        return _is_wrapped(work, wrapped_models, node)
    returns = [one.value for one in ast.walk(function) if isinstance(one, ast.Return) and one.value]
    return any(_is_wrapped(work, wrapped_models, one) for one in returns)


def _wrapped_key(work: Work, wrapped_models: _Wrapped, node: ast.expr) -> _Key | None:
    """Return the variable or attribute that an expression names. Return ``None`` if the variable or attribute
    does not hold a wrapped model at the expression's line.
    """
    key = _key(work, node)
    if key is None and isinstance(node, ast.Attribute):
        key = _of_instance(work, wrapped_models, node)
    if key is None or key not in wrapped_models.keys:
        return None
    function, line = wrapped_models.keys[key]
    before = work.source.function(node) is function and node.lineno <= line
    return None if before else key


def _of_instance(work: Work, wrapped_models: _Wrapped, node: ast.Attribute) -> _Key | None:
    """Return the class and the name of an attribute, such as ``trainer.model``, if the attribute holds a
    wrapped model. If not, return ``None``.
    """
    names = {key.name for key in wrapped_models.keys if isinstance(key.scope, ast.ClassDef)}
    if node.attr not in names:
        return None
    for source in work.flow.sources(node.value):
        if isinstance(source, ast.Call) and isinstance(source.func, ast.Name):
            klass = work.flow.classes.get(source.func.id)
            if klass is not None and (key := _Key(klass, node.attr)) in wrapped_models.keys:
                return key
    return None


def _inner_uses(work: Work, wrapped_models: _Wrapped, backward: frozenset[ast.AST]) -> None:
    """Insert ``.module`` where the script uses an attribute that DDP lacks, or saves or copies a model."""
    for node in ast.walk(work.source.tree):
        inner = isinstance(node, ast.Attribute) and node.attr not in table().torch.same
        if isinstance(node, ast.Attribute | ast.Subscript) and (inner or isinstance(node, ast.Subscript)):
            if (key := _wrapped_key(work, wrapped_models, node.value)) is not None:
                _reach(work, node.value, mixed=key in wrapped_models.mixed)
                if isinstance(node, ast.Attribute):
                    _check_forward(work, node, backward)
        elif isinstance(node, ast.Call) and is_one_of(work.source.dotted_name(node.func), _WHOLE):
            value = argument(node, 0, "obj", "model")
            if value is not None and (key := _wrapped_key(work, wrapped_models, value)) is not None:
                _reach(work, value, mixed=key in wrapped_models.mixed)


def _reach(work: Work, node: ast.expr, *, mixed: bool) -> None:
    if not work.once(node):
        return
    text = work.source.of_node(node)
    if mixed:
        work.edits.replace(
            work.source.start(node), work.source.end(node), f'getattr({text}, "module", {text})'
        )
    else:
        work.edits.insert(work.source.end(node), ".module")
    work.did(node, f"uses the model inside DDP, `{text}.module`")


def _check_forward(work: Work, node: ast.Attribute, backward: frozenset[ast.AST]) -> None:
    """Add a note for the user if a training step calls a method of the model other than ``forward``. DDP
    averages only the gradients of ``forward`` calls.
    """
    called = isinstance(parent := work.source.parents[node], ast.Call) and parent.func is node
    if not called or node.attr in _API or node.attr not in work.flow.functions:
        return
    loops = [one for one in work.source.around(node) if isinstance(one, ast.For | ast.While)]
    step = work.source.function(node) or (loops[-1] if loops else node)
    if any(one in backward for one in ast.walk(step)):
        what = "bypasses the forward method of DDP, so DDP does not average the gradients of this call"
        work.leave(node, f"`{work.shown(node)}` {what}")
