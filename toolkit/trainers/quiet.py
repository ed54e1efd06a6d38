"""Import TensorFlow, and hide the lines that TensorFlow 2.21 writes to standard error at each import.

The variable ``TF_CPP_MIN_LOG_LEVEL`` does not hide these lines, because TensorFlow 2.21 reads the variable
only after writing the lines (tensorflow: tensorflow/core/util/port.cc).
"""

import contextlib
import importlib
import os
import subprocess
import sys
from collections.abc import Iterator

_HIDDEN = (
    "All log messages before absl::InitializeLog() is called are written to STDERR",
    "oneDNN custom operations are on.",
)
_SECONDS = 5.0
"""Time limit in seconds for ``grep`` to write its last lines."""


def import_tensorflow() -> None:
    """Import TensorFlow; if TensorFlow is not installed, do nothing."""
    with without_lines(_HIDDEN), contextlib.suppress(ImportError):
        importlib.import_module("tensorflow")


@contextlib.contextmanager
def without_lines(texts: tuple[str, ...]) -> Iterator[None]:
    """Hide the lines on standard error that contain one of ``texts``.

    A child process, ``grep``, filters the lines. If the Python process crashes, ``grep`` still writes the
    lines that it received. If ``grep`` is not installed, the function hides no lines.
    """
    patterns = [word for text in texts for word in ("-e", text)]
    words = ["grep", "--text", "--line-buffered", "--invert-match", "--fixed-strings", *patterns]
    sys.stderr.flush()
    real, (reads, writes) = os.dup(2), os.pipe()
    try:
        filtering = subprocess.Popen(words, stdin=reads, stdout=real)
        os.dup2(writes, 2)
    except OSError:
        filtering = None
    os.close(reads)
    os.close(writes)
    try:
        yield
    finally:
        sys.stderr.flush()
        os.dup2(real, 2)
        os.close(real)
        if filtering:
            with contextlib.suppress(subprocess.TimeoutExpired):
                filtering.wait(_SECONDS)
