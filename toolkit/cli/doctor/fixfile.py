"""Write the output file of ``toolkit doctor --fix``, and never replace a file that another program wrote."""

from pathlib import Path

from toolkit.cli.frame.files import write_whole
from toolkit.errors import BadInput
from toolkit.files import is_there, read_given
from toolkit.knowledge.strict import LONGEST
from toolkit.report.fix import MARK


def write(file: Path, content: str) -> bool:
    """Write ``content`` to the file, and return whether this changed the file's content.

    Raises:
        BadInput: if the output file exists and ``toolkit doctor --fix`` did not write this file.
    """
    earlier = _own(file)
    if earlier == content:
        return False
    write_whole(file, content.encode())
    return True


def _own(file: Path) -> str | None:
    """Return the text of a file that ``toolkit doctor --fix`` wrote. Return ``None`` if there is no file.

    Raises:
        BadInput: if the file exists and ``toolkit doctor --fix`` did not write this file.
    """
    if not is_there(file):
        return None
    try:
        text = read_given(file, limit=LONGEST).decode("utf-8")
    except (BadInput, UnicodeDecodeError):
        text = ""
    if not text.startswith(MARK):
        raise BadInput(
            f"{file}: this file exists, and `toolkit doctor --fix` did not write it",
            fix="give another name with -o, or move the file to another folder",
        )
    return text
