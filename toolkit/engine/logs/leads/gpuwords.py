"""Find the GPU error that a rank named before it reported that it found no GPU."""

import re
from collections.abc import Sequence

from toolkit.engine.logs.clues import Clue
from toolkit.engine.logs.codes import deciding_code
from toolkit.engine.logs.joblines import Output
from toolkit.engine.logs.topics import GENERAL_CLASSES

_BEFORE = 200
"""When a rank reports that it found no GPU, toolkit looks for a GPU error in this number of lines before the
report.
"""

_NO_GPU_FOUND = re.compile(
    r"(?i)no (?:supported |usable |visible |available )*(?:cuda |hip |rocm |gpu |accelerator )?"
    r"(?:devices?|gpus?|accelerators?) (?:(?:was|were|is|are) )?(?:found|available|detected|visible)"
    r"|unable to initialize backend|not in the list of known backends|unknown backend"
    r"|(?:cuda|rocm|gpu) is not available|cuda\.is_available\(\) is false"
)
"""A pattern for text that frameworks print after every failed attempt to use a GPU, whatever the reason."""

_ABOUT_GPU = re.compile(r"\b(?:CUDA|GPU|ROCm|HIP|[Cc]ompute capability)\b")

_GPU_CODES = ("cuda", "hip")
_GPU_CLASSES = {"cuda-or-hip", "gpu-handover", "node-or-hardware"}


def only_misses_gpu(text: str) -> bool:
    """Return whether a line only reports that a program found no GPU, without a GPU error code."""
    return _NO_GPU_FOUND.search(text) is not None and deciding_code(text, _GPU_CODES) is None


def gpu_error_before(output: Output, clue: Clue, causes: Sequence[Clue]) -> Clue | None:
    """Return the first line in which a rank names a GPU error, shortly before ``clue``; ``None`` without such
    a line. In ``clue``, the same rank reports that it found no GPU, or writes general words about a GPU.
    """
    vague = clue.class_ in GENERAL_CLASSES and _ABOUT_GPU.search(clue.line.text)
    if not vague and not only_misses_gpu(clue.line.text):
        return None
    known = {cause.position: cause for cause in causes if cause.class_ in _GPU_CLASSES}
    for position, line in output.before(clue.position, _BEFORE):
        if line.task != clue.line.task or _NO_GPU_FOUND.search(line.text):
            continue
        code = deciding_code(line.text, _GPU_CODES)
        if code:
            return Clue(position, line, code.class_, 5, "cause", code.retry)
        if position in known:
            return known[position]
    return None
