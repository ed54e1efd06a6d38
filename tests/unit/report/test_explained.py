"""Test the order of an explanation: the line that reports the failure, its cause or class, steps, advice."""

import msgspec

from tests.unit.tables import every_row
from toolkit.engine.logs.explanation import explain_output
from toolkit.engine.logs.joblines import Output
from toolkit.model.finding import RootLine
from toolkit.report.explained import explanation_lines, first_failed, steps

END = "srun: error: node2: task 1: Exited with exit code 1\n"
UNKNOWN = f"1: ShapeError: 3 is not 4\n{END}"
KNOWN = f"1: OSError: [Errno 28] No space left on device: '/scratch/x'\n{END}"


def text(log: str, width: int = 80) -> list[str]:
    return list(explanation_lines(explain_output(Output(log)), width=width))


def test_an_unknown_fault_has_root_line_class_steps_and_advice():
    assert text(UNKNOWN) == [
        "Rank 1 on node2 failed first.",
        "Root line",
        "  line 1: 1: ShapeError: 3 is not 4",
        "",
        "The program ended with a Python exception (python-exception)",
        "  The program, or a package that the program uses, raised an exception. The last",
        "  line of the traceback names the exception; the lines above it show the place.",
        "  1. If the traceback ends in your own code, check this line and its input.",
        "  2. If the traceback ends in a package, find the last line of the traceback",
        "     that is your code, and check the arguments of its call. Check with `pip",
        "     check` whether the installed releases are compatible.",
        "  3. Run one rank with the same input to reproduce the fault.",
        "",
        "Without a change, the same job will probably fail again.",
        "Exit: line 2: srun: error: node2: task 1: Exited with exit code 1",
    ]


def test_a_known_cause_comes_before_the_class():
    lines = text(KNOWN)
    cause = next(number for number, line in enumerate(lines) if line.startswith("Cause: "))
    class_ = next(number for number, line in enumerate(lines) if line.startswith("Class: "))
    assert lines.index("Root line") < cause < class_
    assert lines[cause + 1].startswith(("  1. ", "(")) or "(disk-full)" in lines[cause + 1]


@every_row("width", [40, 80, 100])
def test_lines_fit_the_terminal(width):
    assert all(len(line) <= width for line in text(UNKNOWN + "x" * 30, width))


@every_row(
    ("fix", "wanted"),
    [
        ("one", ["One."]),
        ("one; two; or three.", ["One.", "Two.", "Three."]),
        ("show 'a; b'; two (x; y)", ["Show 'a; b'.", "Two (x; y)."]),
        ("Run one; it is short.\nRun two.", ["Run one; it is short.", "Run two."]),
    ],
)
def test_a_fix_is_cut_at_lines_or_at_semicolons_outside_of_quotes_and_brackets(fix, wanted):
    assert steps(fix) == wanted


def test_ranks_in_different_collectives_are_told_apart():
    root = RootLine(number=1, text="x", rank="0", waited=True, collectives=("BROADCAST 1 (rank 0)",))
    assert first_failed(root).startswith("Ranks waited in a collective until a timeout: BROADCAST 1")
    two = msgspec.structs.replace(root, collectives=("BROADCAST 1 (rank 0)", "ALLREDUCE 2 (rank 1)"))
    said = "Ranks waited in different collectives until a timeout"
    assert first_failed(two) == f"{said}: BROADCAST 1 (rank 0), ALLREDUCE 2 (rank 1)."
