"""Test which exceptions toolkit takes for handled by the program."""

from tests.unit.tables import every_row
from toolkit.engine.logs.explanation import explain_output
from toolkit.engine.logs.joblines import Output


def raised(text: str, label: str = "") -> str:
    lines = (
        "Traceback (most recent call last):",
        '  File "/home/a/train.py", line 7, in <module>',
        "    f()",
        text,
    )
    return "".join(f"{label}{line}\n" for line in lines)


STEP = "step 1 loss 0.5\nstep 2 loss 0.4\n"
EXITED = "srun: error: node1: task 0: Exited with exit code 1\n"
FIRST, LATER = "ValueError: bad record 17", "KeyError: 'later'"


@every_row(
    ("log", "root"),
    [
        # The process continued after the first exception.
        (raised(FIRST) + STEP + raised(LATER), LATER),
        (raised(FIRST, "0: ") + raised(LATER, "0: "), LATER),
        (raised(FIRST) + "starting without a checkpoint\n" + raised(LATER, "[rank0]: "), LATER),
        ("ERROR:root:no cache\n" + raised(FIRST) + "reading the text\n" + raised(LATER), LATER),
        ("--- Logging error ---\n" + raised(FIRST) + raised(LATER), LATER),
        # The first exception stopped a process.
        (raised(FIRST) + raised(LATER), FIRST),
        (raised(FIRST, "0: ") + raised(LATER, "1: "), FIRST),
        (raised(FIRST, "0: ") + EXITED + raised(LATER, "0: "), FIRST),
        ("0: Process Process-1:\n" + raised(FIRST, "0: ") + raised(LATER, "0: "), FIRST),
        ("0: Exception in thread Thread-2:\n" + raised(FIRST, "0: ") + raised(LATER, "0: "), FIRST),
        ("ERROR:root:training failed\n" + raised(FIRST) + raised(LATER), FIRST),
        (raised(FIRST, "[rank1]: ") + STEP + raised(LATER, "[rank0]: "), FIRST),
    ],
)
def test_the_root_is_the_first_exception_that_stopped_a_process(log, root):
    found = explain_output(Output(log)).root
    assert found and found.text.endswith(root)
