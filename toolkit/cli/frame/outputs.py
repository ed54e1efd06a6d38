"""Check the output file of a command that writes facts, before the command collects the facts."""

from pathlib import Path

from toolkit.files import is_dangling, is_there, require_own
from toolkit.probe.bundle import MARK


def check_facts_output(output: Path) -> None:
    """Raise an error if the output would replace a file that is not a facts file.

    A missing or empty file, a device and a FIFO are valid outputs.

    Raises:
        BadInput: if the file exists and contains anything except facts.
    """
    if not is_there(output, label="-o") or is_dangling(output) or _holds_nothing(output):
        return
    require_own(output, MARK, "give another name with -o, or move the existing file to another folder")


def _holds_nothing(output: Path) -> bool:
    """Return whether the output contains no data to overwrite: it is an empty file, a device or a FIFO."""
    if output.is_file():
        return output.stat().st_size == 0
    return output.is_char_device() or output.is_fifo()
