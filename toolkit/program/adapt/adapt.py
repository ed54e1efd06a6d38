"""Change the text of a training script so that its ranks train together; toolkit does not run the script."""

import ast

from toolkit.errors import BadInput
from toolkit.program.adapt.head import put_end, put_head
from toolkit.program.adapt.keras_fit import fits, with_horovod, with_strategy
from toolkit.program.adapt.keras_tape import adapt_tapes, average_steps, gradients
from toolkit.program.adapt.result import ScriptChange, Way
from toolkit.program.adapt.source import ScriptSource
from toolkit.program.adapt.table import is_one_of, table
from toolkit.program.adapt.torch_ddp import backwards, with_ddp
from toolkit.program.adapt.work import Work
from toolkit.program.adapt.writes import on_rank_0, writes_elsewhere

_OWN = (
    "def {name}(path):",
    '\t"""Return `path` on rank 0, or a temporary path on other ranks: all ranks take part in saving."""',
    "\treturn path if {rank} == 0 else os.path.join(tempfile.mkdtemp(), os.path.basename(path))",
    "",
    "",
)


def way_of(source: ScriptSource, name: str) -> Way:
    """Return what toolkit uses to connect the ranks of a script: ``torch`` for PyTorch, ``horovod`` for
    Keras and TensorFlow. Error messages begin with ``name``, the name of the script.

    Raises:
        BadInput: if toolkit finds no training in the script, or the script uses neither Keras nor PyTorch.
    """
    work = Work.of(source, "", "")
    if backwards(work):
        return "torch"
    if gradients(work) or fits(work):
        return "horovod"
    packages = {meaning.partition(".")[0] for meaning in source.names.meanings.values()}
    if packages & {"tensorflow", "keras", "tf_keras", "torch"}:
        raise BadInput(
            f"{name}: toolkit found no training: the script calls neither fit, tape.gradient nor backward",
            fix="give the file that contains the loop over the batches",
        )
    raise BadInput(
        f"{name}: the script uses neither Keras nor PyTorch",
        fix="connect the ranks as docs/howto/own-script.md shows, or run separate copies of the script: "
        "`toolkit launch --copies`",
    )


def change_script(
    source: ScriptSource, way: Way
) -> tuple[str, tuple[ScriptChange, ...], tuple[ScriptChange, ...]]:
    """Return the changed text of a script, the list of changes, and the list of lines that the user must
    check. ``way`` says what connects the ranks.

    Raises:
        BadInput: if toolkit cannot insert lines into the script, or ``way`` does not support the script's
            training.
    """
    work = {"horovod": _horovod, "tf-config": _strategy, "torch": _torch}[way](source)
    text = work.edits.apply(work.on_first_rank)
    try:
        ast.parse(text)
    except SyntaxError as error:  # The changes conflict: do not return a script that Python cannot parse.
        raise BadInput(
            f"line {error.lineno} of the changed script is not valid Python: {error.msg}",
            fix="report this error, and attach the script; or change the script by hand, as "
            "docs/howto/own-script.md shows",
        ) from error
    order = {"key": lambda one: one.line}
    return text, tuple(sorted(work.changes, **order)), tuple(sorted(work.user_notes, **order))  # type: ignore[call-overload]


def _keras_3(source: ScriptSource) -> ast.AST | None:
    """Return the syntax node of a name that only Keras 3 has, or ``None``."""
    for node in ast.walk(source.tree):
        backend = isinstance(node, ast.Constant) and node.value == "KERAS_BACKEND"
        if backend or is_one_of(source.dotted_name(node), table().keras.three):
            return node
    return None


def _horovod(source: ScriptSource) -> Work:
    name = Work.of(source, "", "").free_name("hvd")
    work = Work.of(source, f"{name}.size()", f"{name}.rank()")
    trained, tapes = fits(work), gradients(work)
    keep = with_horovod(work, trained, name) if trained else frozenset[ast.AST]()
    module = "horovod.tensorflow.keras" if trained else "horovod.tensorflow"
    imports = [f"import {module} as {name}"]
    if tapes:
        tensorflow = f"{name}_tf" if trained else name
        if trained:
            imports.append(f"import horovod.tensorflow as {tensorflow}")
        keep |= adapt_tapes(work, tapes, tensorflow)
    elif trained and average_steps(work, f"{name}_tf"):
        imports.append(f"import horovod.tensorflow as {name}_tf")
    tf = work.name_of("tensorflow", "import tensorflow as tf")
    if (node := _keras_3(source)) is not None:
        work.leave(
            node, 'Keras 3: Horovod needs an image that toolkit built from a recipe with `keras = "3.*"`'
        )
    on_rank_0(work, f'{name}.allreduce({tf}.zeros(1), name="barrier")', keep)
    writes_elsewhere(work)
    gpus = work.free_name("gpus")
    start = [
        f"{name}.init()",
        f'{gpus} = {tf}.config.list_physical_devices("GPU")',
        f"if {gpus}:  # a GPU for each rank of the node",
        f'\t{tf}.config.set_visible_devices({gpus}[{name}.local_rank() % len({gpus})], "GPU")',
    ]
    _put_head(work, imports, start, before_main=True)
    return work


def _strategy(source: ScriptSource) -> Work:
    plain = Work.of(source, "", "")
    if gradients(plain):
        raise BadInput(
            "the script trains with GradientTape, which toolkit supports only with Horovod, not with "
            "`--program tf-config`",
            fix="use Horovod: `--program horovod`",
        )
    if _keras_3(source) is not None:
        # Measured with TensorFlow 2.21: fit of Keras 3 fails with MultiWorkerMirroredStrategy.
        # The method fit of Keras 3 cannot read values that are distributed over several workers.
        raise BadInput(
            "Keras 3 does not work with MultiWorkerMirroredStrategy", fix="use Horovod: `--program horovod`"
        )
    name, rank, own = plain.free_name("strategy"), plain.free_name("rank"), plain.free_name("own")
    work = Work.of(source, f"{name}.num_replicas_in_sync", rank)
    work.path_helper = own
    keep = with_strategy(work, fits(work))
    tf = work.name_of("tensorflow", "import tensorflow as tf")
    on_rank_0(work, "", keep)
    writes_elsewhere(work)
    imports: list[str] = []
    if any(f"{own}(" in edit for edit in work.edits.texts):
        imports = [line for line in ("import os", "import tempfile") if line[7:] not in source.names.meanings]
        work.helpers += [line.format(name=own, rank=rank) for line in _OWN]
    start = [
        f"{name} = {tf}.distribute.MultiWorkerMirroredStrategy()",
        f"{tf}.distribute.experimental_set_strategy({name})",
        f"{rank} = {name}.cluster_resolver.task_id",
    ]
    _put_head(work, imports, start, before_main=True)
    return work


def _torch(source: ScriptSource) -> Work:
    name = Work.of(source, "", "").free_name("dist")
    known = next((n for n, m in source.names.meanings.items() if m == "torch.distributed"), name)
    work = Work.of(source, f"{known}.get_world_size()", f"{known}.get_rank()")
    imports = with_ddp(work)
    on_rank_0(work, f"{known}.barrier()")
    writes_elsewhere(work)
    put_end(work, [f"{known}.destroy_process_group()"])
    start = [
        f'{known}.init_process_group("nccl" if torch.cuda.is_available() else "gloo")',
        "if torch.cuda.is_available():  # a GPU for each rank of the node",
        '\ttorch.cuda.set_device(int(os.environ["LOCAL_RANK"]) % torch.cuda.device_count())',
    ]
    distributed = [] if known != name else [f"import torch.distributed as {known}"]
    if "torch" not in source.names.meanings:
        distributed.append("import torch")
    own = ["import os"] if source.names.meanings.get("os") != "os" else []
    _put_head(work, [*own, *distributed, *imports], start, before_main=False)
    return work


def _put_head(work: Work, imports: list[str], start: list[str], *, before_main: bool) -> None:
    if not put_head(work, imports, start, before_main=before_main):
        raise BadInput(
            "toolkit cannot insert lines: the script does not start with imports on separate lines",
            fix="put the imports at the top of the file, one per line",
        )
