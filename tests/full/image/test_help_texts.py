"""Test that toolkit explains most messages of Open MPI's help files in the training image."""

import io
import re
import tarfile

import pytest

from tests.services.ready import IMAGE
from toolkit.engine.logs.explanation import explain_output
from toolkit.engine.logs.joblines import Output

_FOLDERS = ("/usr/share/openmpi", "/usr/share/prte")
_FILE = re.compile(r"/help-(?!cli\b|schizo|\S*(?:shmem|info)|(?:p?run|prte\w*|mpirun)\.txt)[\w-]+\.txt$")
"""Pattern of the files with messages; the other files describe options."""
_HEAD = re.compile(r"^\[([^\]]+)\]\s*$", re.MULTILINE)
_NO_FAILURE = re.compile(r"(?i)usage|version|warning|copyright|--help|deprecat")
_VALUES = ((r"%-?\d*l?l?[dui]", "3"), (r"%-?\d*[sS]", "node01"), (r"%0?\d*l?[xX]", "3f"))
DASHES = "-" * 74


@pytest.fixture(scope="module")
def messages(engine):
    """Return the messages with sample values, without texts about usage and without warnings."""
    container = engine.containers.create(IMAGE)
    try:
        packed = [b"".join(container.get_archive(folder)[0]) for folder in _FOLDERS]
    finally:
        container.remove()
    found: set[str] = set()
    for archive in packed:
        with tarfile.open(fileobj=io.BytesIO(archive)) as files:
            named = [member for member in files if _FILE.search(member.name)]
            for member in named:
                text = files.extractfile(member).read().decode(errors="replace")
                found |= {part.strip("\n") for part in _HEAD.split(re.sub(r"(?m)^#.*\n", "", text))[2::2]}
    filled = (_filled(text) for text in found)
    return sorted(text for text in filled if text.strip() and not _NO_FAILURE.search(text[:600]))


def _filled(text: str) -> str:
    for pattern, value in _VALUES:
        text = re.sub(pattern, value, text)
    return text.replace("%%", "%")


def test_the_first_line_of_nearly_each_message_is_the_root_line(messages):
    assert len(messages) > 300
    missed = []
    for text in messages:
        said = explain_output(Output(f"step 1 loss 0.4\nstep 2 loss 0.3\n{DASHES}\n{text}\n{DASHES}\n"))
        first = next(line.strip() for line in text.splitlines() if line.strip())
        if said.root is None or not said.root.text.startswith(first[:40]):
            missed.append((first, said.root.text if said.root else None))
    # The rest are options of commands, and notes after which Open MPI continues.
    assert len(missed) < len(messages) / 4, missed
    # A message that does not name MPI may be of another program, so toolkit shows the line with the error.
    other = [pair for pair in missed if pair[1] is not None]
    assert len(other) < len(messages) / 20, other
