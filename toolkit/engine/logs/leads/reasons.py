"""Find the line with the reason of a failure, if the root line (the first line that reports the failure) does
not contain the reason.
"""

import re
from collections.abc import Sequence
from dataclasses import replace

from toolkit.engine.logs.clues import Clue, strip_label
from toolkit.engine.logs.joblines import Line, Output
from toolkit.engine.logs.line_class import classify

_LEVEL_OF_2 = r"^(?:#\d{1,3} )?\S{0,200}\bH5\w{0,40}\.c:\d+ \(\w+\): "
_STACK = re.compile(r"^HDF5-DIAG: Error detected in |^\s*#0\d\d: \S{1,200}\.c line \d+ in |" + _LEVEL_OF_2)
_LEVEL = re.compile(r"^\s*#\d{3}: \S{1,200}\.c line \d+ in |" + _LEVEL_OF_2)
"""Patterns for the first line and for a level of an error stack from HDF5. The outermost level is first; the
last level has the reason. HDF5 2 writes the levels in another form than HDF5 1.
"""

_TRACE = re.compile(r"^(?:.{1,120}: )?HDF5 error back trace$")
_CALL = re.compile(r'^\s*File "[^"]{1,200}\.c", line \d+, in \w+$')
_TRACE_ENDS = "End of HDF5 error back trace"
"""The heading, a call and the end of an error stack that PyTables prints. The message of a call is on the
next line; the last call has the reason.
"""

_DETAIL = re.compile(r"^\s+(?:class|major|minor): ")
_MOST = 60
"""Maximum number of lines of an error stack."""

_GRAPH = re.compile(r": Graph execution error:")
_NODE = re.compile(r"^\s*\[\[\{\{node ")
_PLACE = re.compile(r"^\s*File |^Node: |^Detected at node ")
"""Patterns for the lines of an error of a TensorFlow graph: its heading, the name of a node of the graph, and
a place in the source code of the program.
"""

_SUBMITS = re.compile(
    r"\b(?:sbatch|salloc|srun): error: (?!Batch job submission failed|(?:Memory specification|CPU count)\b)"
    r"(.{1,300})"
)
_REFUSED = re.compile(
    r"\b(?:sbatch|salloc|srun): error: (?:Batch job submission failed|Job submit/allocate failed"
    r"|Unable to allocate resources): (?!Unspecified error)"
)
"""Patterns for a message that a site's Slurm plugin prints for a submitted job, and for the line in which
Slurm gives its own reason for refusing the job.
"""

_PLUGIN = 10
"""Maximum number of messages from a site's plugin before Slurm's reason."""

_CHILD_OF_PYXIS = re.compile(r"\bpyxis: child \d{1,10} failed with error code")
_OF_PYXIS = re.compile(r"\bpyxis: (?:failed to|could(?:n't| not)) ")
"""Patterns for the report of a failed child process of pyxis, and for the line that names the failed step of
pyxis.
"""

_NEXT = 3
"""Number of lines after pyxis's report in which toolkit looks for the line with the failed step."""

_TASK_FAILED = re.compile(r"Error executing process >|process > .{1,200}, failed: \d")
_CAUSED_BY = re.compile(r"^\s*Caused by:\s*$")
_SUMMARY = 30
"""Maximum number of lines between Nextflow's report of a failed process and the reason."""


def innermost_level(output: Output, clue: Clue, causes: Sequence[Clue]) -> Clue | None:
    """If the root line is part of an error stack from HDF5, return the last level of this stack. The result
    is ``None`` for another root line, or if the output ends within the stack.
    """
    del causes
    if not _STACK.match(strip_label(clue.line.text)):
        return None
    found: Clue | None = None
    complete = False
    for position, line in output.places_after(clue.position, _MOST):
        text = strip_label(line.text)
        if not text.strip() and found is None:
            continue  # an empty line below the heading
        if not _LEVEL.match(text) and not _DETAIL.match(text):
            break
        complete = _DETAIL.match(text) is not None
        if not complete:
            found = replace(clue, position=position, line=line)
    return found if complete else None


def innermost_call(output: Output, clue: Clue, causes: Sequence[Clue]) -> Clue | None:
    """If the root line is the heading of an error stack that PyTables prints, return the message of the last
    call of this stack. The result is ``None`` for another root line, or if the output ends within the stack.
    """
    del causes
    if not _TRACE.match(strip_label(clue.line.text).strip()):
        return None
    found: Clue | None = None
    called = False
    for position, line in output.places_after(clue.position, _MOST):
        text = strip_label(line.text)
        if text.strip() == _TRACE_ENDS:
            return found
        if called and text.strip():
            found = replace(clue, position=position, line=line)
        called = _CALL.match(text) is not None
    return None


def message_of_graph(output: Output, clue: Clue, causes: Sequence[Clue]) -> Clue | None:
    """If the root line is the heading of an error of a TensorFlow graph, return the message of the error;
    otherwise ``None``.

    TensorFlow writes the heading, then places in the program's source code, then the message, and then the
    names of the graph's nodes.
    """
    del causes
    if not _GRAPH.search(clue.line.text):
        return None
    last: tuple[int, Line] | None = None
    for position, line in output.places_after(clue.position, _MOST):
        text = strip_label(line.text)
        if line.task != clue.line.task or not text.strip():
            continue
        if _NODE.match(text) and last:
            said = strip_label(last[1].text)
            return None if _PLACE.match(said) else replace(clue, position=last[0], line=last[1])
        last = (position, line)
    return None


def reason_of_refusal(output: Output, clue: Clue, causes: Sequence[Clue]) -> Clue | None:
    """If the root line is a message of a site's Slurm plugin and names no fault, return the later line in
    which Slurm says why it refused the job; ``None`` in all other cases.
    """
    del causes
    said = _SUBMITS.search(clue.line.text)
    if said is None or classify(said[1]) is not None:
        return None
    for position, line in output.places_after(clue.position, _PLUGIN):
        if _REFUSED.search(line.text):
            return replace(clue, position=position, line=line)
    return None


def reason_of_task(output: Output, clue: Clue, causes: Sequence[Clue]) -> Clue | None:
    """If the root line only reports that a Nextflow process failed, return the line in which Nextflow says
    why. The result is ``None`` for another root line, or if the reason is only an exit status.
    """
    del causes
    if not _TASK_FAILED.search(clue.line.text):
        return None
    below = False
    for position, line in output.places_after(clue.position, _SUMMARY):
        text = strip_label(line.text)
        if below and text.strip():
            row = classify(text)
            if row is not None and row.role == "ending":
                return None
            return Clue(position, line, row.class_ if row else "unknown-error", 3, "cause")
        below = below or _CAUSED_BY.match(text) is not None
    return None


def step_of_pyxis(output: Output, clue: Clue, causes: Sequence[Clue]) -> Clue | None:
    """If the root line says that a child process of pyxis failed, return the next line that names the failed
    step of pyxis; otherwise ``None``.
    """
    del causes
    if not _CHILD_OF_PYXIS.search(clue.line.text):
        return None
    near = output.places_after(clue.position, _NEXT)
    found = ((position, line) for position, line in near if _OF_PYXIS.search(line.text))
    return next((replace(clue, position=position, line=line) for position, line in found), None)
