"""``toolkit adapt``: change a training script for one process into a script for several ranks.

toolkit reads the script but does not run it.
"""

import ast
import difflib
import io
import tokenize
from pathlib import Path

from toolkit.errors import BadInput
from toolkit.files import read_given
from toolkit.program.adapt.adapt import change_script, way_of
from toolkit.program.adapt.result import AdaptedScript, ScriptChange, Way
from toolkit.program.adapt.source import ScriptSource, method
from toolkit.program.script.facts import ScriptFacts
from toolkit.program.script.read import read_script

_LONGEST = 4 << 20
_TRAINS = {"backward", "fit", "apply_gradients"}


def adapt(path: Path, program: Way | None = None) -> tuple[AdaptedScript, bytes]:
    """Return the changes that a script needs to run on several ranks, and the changed script.

    toolkit leaves a script unchanged if the script already connects its ranks, or uses a framework's trainer
    class.

    Args:
        path: a training script that uses Keras or PyTorch.
        program: what connects the ranks, such as ``horovod`` or ``torch``. If ``None``, toolkit chooses.

    Raises:
        BadInput: if the file is not valid Python, or toolkit does not recognise its training code.
    """
    content = read_given(path, limit=_LONGEST)
    facts = read_script(path)
    if facts.faults:
        fault = facts.faults[0]
        raise BadInput(f"{fault.file}:{fault.line}: {fault.message}", fix="fix the syntax error first")
    text, encoding = _decode_script(content, path)
    if facts.joins or facts.trainer:
        joins = tuple(sorted(facts.joins)) or ("trainer",)
        return AdaptedScript(file=str(path), program=None, joins=joins), content
    try:
        source = ScriptSource.of(text)
        way = program or way_of(source, path.name)
        adapted, changes, left = change_script(source, way)
    except (RecursionError, ValueError, MemoryError) as error:
        raise BadInput(f"{path}: cannot be parsed: {error}") from error
    except BadInput as error:
        raise BadInput(
            f"{path.name}: {error.message.removeprefix(f'{path.name}: ')}", fix=error.fix
        ) from error
    result = AdaptedScript(
        file=str(path),
        program=way,
        changes=changes,
        left=(*_notes_on_joins(facts), *left, *_elsewhere(facts, path)),
        diff=_diff(text, adapted, path.name),
    )
    return result, adapted.encode(encoding)


def _decode_script(content: bytes, path: Path) -> tuple[str, str]:
    try:
        encoding = tokenize.detect_encoding(io.BytesIO(content).readline)[0]
        return content.decode(encoding), encoding
    except (SyntaxError, UnicodeDecodeError, LookupError) as error:
        raise BadInput(f"{path}: {error}") from error


def _notes_on_joins(facts: ScriptFacts) -> tuple[ScriptChange, ...]:
    """Return a note for each part of the script that may join the ranks and that toolkit cannot analyse."""
    return tuple(
        ScriptChange(line=1, what=f"check whether the script connects its ranks: {why}")
        for why in facts.unknown
    )


def _elsewhere(facts: ScriptFacts, path: Path) -> tuple[ScriptChange, ...]:
    """Return a note for each file that the script imports and that trains, loads data or saves a model.

    Users must change these files themselves, because ``toolkit adapt`` changes only the script. Each note
    names the first call of this kind in the file, such as ``model.fit``.
    """
    changes = []
    for file in facts.files:
        if file.name == path.name and file.samefile(path):
            continue
        source = ScriptSource.of(_decode_script(file.read_bytes(), file)[0])
        for call in source.calls():
            name = source.dotted_name(call.func)
            if method(call) in _TRAINS or name.endswith((".DataLoader", "torch.save")):
                what = f"`{ast.unparse(call.func)}` is in a file that `toolkit adapt` does not change"
                changes.append(ScriptChange(line=1, what=f"{file.name}, line {call.lineno}: {what}"))
                break
    return tuple(changes)


def _diff(old_text: str, new_text: str, name: str) -> str:
    stem = name.removesuffix(".py")
    lines = difflib.unified_diff(
        old_text.splitlines(keepends=True), new_text.splitlines(keepends=True), name, f"{stem}_dist.py"
    )
    return "".join(
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines
    )
