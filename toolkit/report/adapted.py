"""Format the result of ``toolkit adapt``: the diff of the script, and the lines that the user must check or
change.
"""

import textwrap

from toolkit.program.adapt.result import AdaptedScript
from toolkit.report.lines import Style
from toolkit.report.plain import join_lines, one_line

_STYLES = {"+": "good", "-": "bad", "@": "dim"}
_TITLES = {
    "horovod": "Horovod",
    "tf-config": "MultiWorkerMirroredStrategy",
    "torch": "DistributedDataParallel",
    "mpi": "MPI",
    "jax": "jax.distributed",
    "trainer": "a trainer of toolkit",
}


def diff_text(result: AdaptedScript, style: Style) -> str:
    """Return the diff of an adapted script. If ``style`` adds no colours, the program ``patch`` can apply the
    diff to the script.
    """
    lines = result.diff.removesuffix("\n").split("\n")
    return join_lines(style(line, _STYLES.get(line[:1], "")) for line in lines)


def already_text(result: AdaptedScript) -> str:
    """Return the message that toolkit does not change a script, because the script already connects its
    ranks.
    """
    names = " and ".join(_TITLES.get(join, join) for join in result.joins)
    return one_line(f"{result.file} already connects its ranks ({names}); toolkit changes nothing")


def notes_text(result: AdaptedScript, width: int, launch: str) -> str:
    """Return the text below the diff: the number of changes, the lines of the script that the user must check
    or change, and the launch command ``launch``.
    """
    title = _TITLES[result.program or "mpi"]
    lines = [f"{len(result.changes)} changes for {title}."]
    if result.left:
        lines.append("Unchanged lines that you must check, because adapt cannot decide how to change them:")
        for note in result.left:
            head = f"  line {note.line}: "
            lines += textwrap.wrap(
                one_line(head + note.what), width, subsequent_indent=" " * 6, break_on_hyphens=False
            )
    lines += ["Next", f"  {one_line(launch)}"]
    return join_lines(lines)
