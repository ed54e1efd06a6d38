"""Test messages that Open MPI writes between two lines of dashes."""

from tests.unit.engine.logs.test_root import told
from tests.unit.tables import every_row

DASHES = "-" * 74
STEPS = "step 1 loss 0.41\nstep 2 loss 0.38\n"
SENTENCES = {
    0: "The list of nodes has a host that was not part of the job, so no rank was placed: Host: node7",
    1: "Both lists of interfaces were specified: Include: eth0",
}
REJECTED = (
    "The list of nodes has a host that was not part of\nthe job, so no rank was placed:\n\n  Host: node7\n"
)
MADE_UP = "Both lists of interfaces were specified:\n\n  Include: eth0\n  Exclude: eth1\n"


def block(text: str) -> str:
    return f"{DASHES}\n{text}{DASHES}\n"


def root(log: str) -> tuple[str, str]:
    """Return the root line (the line that toolkit names as the fault's cause) and the fault's class."""
    return told(log)[:2]


@every_row("number", [0, 1])
@every_row("end", ["", "srun: error: node1: task 0: Exited with exit code 1\n"])
def test_the_first_sentence_of_an_unknown_message_is_the_root_line(number, end):
    text = (REJECTED, MADE_UP)[number]
    assert root(STEPS + block(text) + end) == (SENTENCES[number], "mpi")


def test_a_later_sentence_of_the_message_leads_to_its_first_line():
    text = "A rule for the placement was given twice.\nThe launcher does not know which is wrong.\n"
    assert root(STEPS + block(text)) == ("A rule for the placement was given twice.", "mpi")


@every_row(
    "text",
    [
        "The fast path is not available; another transport will be used.\n",
        "No device of this kind was found. The setting is ignored.\n",
        "WARNING: a file of settings is missing.\n",
        "Rank 0 of this program runs on node1.\n",
    ],
)
def test_a_message_that_only_informs_is_no_failure(text):
    assert root(STEPS + block(text)) == ("", "")


def test_lines_of_dashes_of_other_programs_hold_no_message_of_mpi():
    raised = (
        'Traceback (most recent call last):\n  File "t.py", line 2, in <module>\n    fit()\n'
        "ValueError: bad shape\n"
    )
    for width in (74, 75, 80):
        rule = "-" * width + "\n"
        assert root(f"{rule}Training with a.yaml\n{raised}{rule}") == (
            "ValueError: bad shape",
            "python-exception",
        )
    table = f"{DASHES}\n0 | model | Net | 12 no grads\n{DASHES}\n"
    ended = "srun: error: n1: task 3: Exited with exit code 3\n"
    assert root(table + ended) == (ended.strip(), "exit-status")
    assert root(block(REJECTED) + STEPS * 2 + ended)[0] != SENTENCES[0]


def test_a_message_after_which_the_program_goes_on_is_no_failure():
    assert root(block(REJECTED) + STEPS * 3) == ("", "")


def test_a_line_of_the_program_between_two_messages_belongs_to_neither():
    stopped = "mpirun has exited due to process rank 2 with PID 7 on\nnode node2 exiting improperly.\n"
    log = STEPS + block(REJECTED) + "Error: the grid file is not complete\n" + block(stopped)
    assert root(log) == ("Error: the grid file is not complete", "unknown-error")


def test_the_first_of_several_messages_about_one_failure_is_the_root_line():
    noted = "[node1:7] [[3,0],0] ORTE_ERROR_LOG: Error in file orte/util/a.c at line 9\n"
    inner = (
        "It looks like orte_init failed for some reason.\nThis failure appears to be an internal failure.\n"
    )
    assert root(STEPS + block(REJECTED) + noted * 2 + block(inner))[0] == SENTENCES[0]
    assert root(STEPS + block(REJECTED) + block(inner))[0] == SENTENCES[0]
    warned = "WARNING: a device is not used.\n"
    assert root(STEPS + block(warned) + block(inner))[0] == inner.splitlines()[0]
