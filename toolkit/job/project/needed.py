"""Find options, files, keyboard input and GPUs that a program needs but that its job does not provide."""

import os
import posixpath
from collections.abc import Iterator
from pathlib import Path

from toolkit.folders import has_file, has_folder, is_below
from toolkit.image.software.contents import Contents
from toolkit.job.project.code import Code
from toolkit.job.project.starts import fix_of
from toolkit.model.finding import LaunchFault
from toolkit.model.jobfile import JobFile
from toolkit.near import suggest_near
from toolkit.program.launchers import LAUNCHERS
from toolkit.program.script.facts import Need, ScriptFacts
from toolkit.render import quote_word

_MOST_SHOWN = 60
_SLURM = frozenset({"scontrol", "squeue", "sinfo", "sacct", "sbatch", "salloc"})
_IMPORTED = frozenset(
    (
        *(
            "calendar",
            "collections",
            "copy",
            "dataclasses",
            "datetime",
            "email",
            "enum",
            "functools",
            "hashlib",
        ),
        *("html", "http", "inspect", "json", "logging", "multiprocessing", "numbers", "operator", "pickle"),
        *("platform", "queue", "random", "secrets", "select", "signal", "socket", "string", "struct"),
        *("subprocess", "tempfile", "threading", "token", "tokenize", "types", "typing"),
    )
)
"""Modules of the standard library that NumPy and frameworks such as PyTorch import."""


def faults(
    code: Code,
    job: JobFile,
    image: str,
    contents: Contents | None,
    tensorflow: str,
    *,
    in_folder: bool,
    gpus: bool,
) -> Iterator[LaunchFault]:
    """Yield the faults of a program, in the order in which they would stop the job.

    Args:
        code: the job's command, with the facts about its program from files on this machine.
        job: the job that runs the command.
        image: the name of the image.
        contents: the commands and modules of the image, or ``None`` if toolkit could not read them.
        tensorflow: the version of TensorFlow in the image, or an empty string.
        in_folder: true if the job starts in the current folder or in a copy of this folder.
        gpus: true if the ranks may have GPUs: the job requests GPUs, or its partition or nodes have GPUs.
    """
    words = code.arguments
    ranks = (job.nodes or 1) * (job.ranks_per_node or 1)
    for facts in code.facts.facts:
        if words is not None:
            yield from _relative(code, facts)
            yield from _options(facts, words, job)
        for need in facts.needs:
            if need.kind == "gpu":
                yield from () if gpus else (_gpu(code, need),)
            elif need.kind == "tensorflow-1":
                if tensorflow.startswith("2."):
                    yield _tensorflow(code, need, tensorflow)
                    break
            elif need.kind == "command":
                yield from _command(code, need, image, contents, ranks)
            elif words is not None:
                yield from _of_need(code, facts, need, words, in_folder=in_folder)
        yield from _hiding(code, facts)


def _place(code: Code, need: Need) -> str:
    return f"{code.shorten(need.file)}:{need.line}"


def _options(facts: ScriptFacts, words: tuple[str, ...], job: JobFile) -> Iterator[LaunchFault]:
    if facts.options is None or job.sweep:
        return
    if fault := facts.options.fault(words):
        known = {word for _, names, _ in facts.options.calls for word in names}
        strange = fault.removeprefix("unrecognized arguments: ").split()[0]
        hint = suggest_near(strange, known) if strange != fault.split()[0] else ""
        yield LaunchFault(
            f"{facts.path.name}: {fault}{hint}",
            f"correct the options after `--`: toolkit launch … {facts.path.name} -- OPTIONS",
        )


def _of_need(
    code: Code, facts: ScriptFacts, need: Need, words: tuple[str, ...], *, in_folder: bool
) -> Iterator[LaunchFault]:
    where = _place(code, need)
    if need.kind == "keyboard":
        debugger = need.text != "input()" and "getpass" not in need.text
        yield LaunchFault(
            f"{where}: {need.text} waits for keyboard input, which a job does not get",
            "remove the line" if debugger else "read the value from the command line or from a file",
        )
    elif need.kind == "argument":
        place = int(need.text) - 1
        if place >= len(words):
            yield LaunchFault(
                f"{where}: the program reads the file that argument {need.text} names, but the command has "
                + ("1 argument" if len(words) == 1 else f"{len(words)} arguments"),
                f"name the file after `--`: toolkit launch … {facts.path.name} -- FILE",
            )
        elif in_folder:
            yield from _file(code, where, words[place])
    elif in_folder:
        if need.kind == "option":
            path = facts.options.value(words, need.text) if facts.options else ""
            yield from _file(code, where, path) if path else ()
        elif need.text not in facts.words:
            yield from _file(code, where, need.text)


def _file(code: Code, location: str, path: str) -> Iterator[LaunchFault]:
    """Yield a fault if the file or folder ``path`` is missing. ``location`` is the line that needs the file.

    toolkit does not check an absolute path outside the project, because this path may exist on the cluster.
    """
    full_path = Path(os.path.normpath(code.start / path))
    inside = not posixpath.isabs(path) or is_below(str(full_path), str(code.root))
    if "://" in path or "~" in path or not path or not inside or has_file(full_path) or has_folder(full_path):
        return
    try:
        names = [entry.name for entry in full_path.parent.iterdir()]
    except OSError:
        names = []
    yield LaunchFault(
        f"{location}: {path}: no such file{suggest_near(full_path.name, names)}",
        "correct the name, or add the file",
    )


def _tensorflow(code: Code, need: Need, version: str) -> LaunchFault:
    return LaunchFault(
        f"{_place(code, need)}: the image's TensorFlow {version} has no `{need.text}`",
        "write `import tensorflow.compat.v1 as tf` and `tf.disable_v2_behavior()`, "
        "or convert the script with tf_upgrade_v2",
    )


def _command(
    code: Code, need: Need, image: str, contents: Contents | None, ranks: int
) -> Iterator[LaunchFault]:
    """Yield a fault if each of several ranks would start a launcher such as mpirun, or if the program starts
    a command that the image lacks.
    """
    name = need.text
    if name in LAUNCHERS and ranks > 1:
        message = f"each of the {ranks} ranks would run `{name}`, which starts more ranks"
        yield LaunchFault(f"{_place(code, need)}: {message}", fix_of(name))
        return
    if contents is None or name in contents.commands or name.startswith("nvidia-"):
        return
    fix = fix_of(name)
    if name in _SLURM:
        fix = "instead, read the variables that toolkit sets: MASTER_ADDR, MASTER_PORT, RANK and WORLD_SIZE"
    yield LaunchFault(f"{_place(code, need)}: {image} has no command `{name}`", fix)


def _gpu(code: Code, need: Need) -> LaunchFault:
    shown = need.text if len(need.text) <= _MOST_SHOWN else f"{need.text[:_MOST_SHOWN]}…"
    return LaunchFault(
        f"{_place(code, need)}: `{shown}` needs a GPU, but the job does not request GPUs",
        "request GPUs with --gpus-per-node 1, or make the line also work on CPUs",
    )


def _relative(code: Code, facts: ScriptFacts) -> Iterator[LaunchFault]:
    """Yield a fault if a script contains a relative import but Python starts the script by its path, as in
    ``python DIR/FILE.py``. Such an import always fails.
    """
    if code.facts.script is None or not facts.relative:
        return
    imported = facts.relative[0]
    inner = os.path.relpath(Path(facts.path).with_suffix("").absolute(), Path.cwd())
    words = " ".join(quote_word(word) for word in code.arguments or ())
    command = f"toolkit launch … -- python -m {inner.replace('/', '.')} {words}".rstrip()
    as_module = "launch the file as a module (`python -m`), in the folder that contains the package"
    fix = command if "/" in inner and ".." not in inner else as_module
    yield LaunchFault(
        f"{code.shorten(imported.file)}:{imported.line}: Python does not find `{imported.module}` if the "
        "command starts the file by its path",
        fix,
    )


def _hiding(code: Code, facts: ScriptFacts) -> Iterator[LaunchFault]:
    """Yield a fault if a project file hides a standard library module that other modules import."""
    folder = code.start if code.facts.script is None else facts.path.absolute().parent
    for file in facts.files:
        stem = file.stem
        if stem in _IMPORTED and file.absolute().parent == folder and file != facts.path:
            yield LaunchFault(
                f"{code.shorten(str(file))} hides Python's module `{stem}`, which other modules import",
                "rename the file",
            )
