"""Write the files of ``toolkit doctor --fix``; files of other origin are never changed."""

from pathlib import Path

from toolkit.cli.frame.files import write_whole
from toolkit.errors import BadInput
from toolkit.files import is_there, read_given
from toolkit.knowledge.strict import LONGEST
from toolkit.report.fix import MARK


def write(file: Path, content: str) -> bool:
    """Write a file, and keep an earlier one of this command beside it; return whether anything changed.

    Raises:
        BadInput: if a file of that name is there that this command did not write.
    """
    earlier = _own(file)
    if earlier == content:
        return False
    if earlier is not None:
        kept = undo_file(file)
        _own(kept)
        write_whole(kept, earlier.encode())
    write_whole(file, content.encode())
    return True


def undo(file: Path) -> str:
    """Put back what was there before the last :func:`write`, and say what that was.

    Raises:
        BadInput: if there is nothing of this command to be undone.
    """
    if _own(file) is None:
        raise BadInput(f"{file}: there is no such file, and nothing to undo")
    kept = undo_file(file)
    if _own(kept) is None:
        file.unlink()
        return f"{file} is removed; there was none before"
    kept.replace(file)
    return f"{file} is as it was before"


def undo_file(file: Path) -> Path:
    """Return where the earlier version of a file is kept."""
    return file.with_name(f"{file.name}.undo")


def _own(file: Path) -> str | None:
    """Return the text of a file that this command wrote, ``None`` if there is no file."""
    if not is_there(file):
        return None
    try:
        text = read_given(file, most=LONGEST).decode("utf-8")
    except (BadInput, UnicodeDecodeError):
        text = ""
    if not text.startswith(MARK):
        raise BadInput(
            f"{file}: there already, and toolkit doctor --fix did not write it",
            fix="give another name with -o, or move it away",
        )
    return text
