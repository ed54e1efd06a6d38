"""Test that the root line is the error that ends the program, and not an error that the program survives."""

from tests.unit.engine.logs.test_root import TRACEBACK, told
from tests.unit.tables import every_row
from toolkit.engine.logs.explanation import explain_output
from toolkit.engine.logs.joblines import Output

STEPS_BEFORE = "step 1 loss 0.41\nstep 2 loss 0.38\n"

FAILED = TRACEBACK.format("it", "OSError: [Errno 16] Device or resource busy: 'x'")
STEPS = "epoch 3 loss 0.3000\nepoch 4 loss 0.2000\n"
RULE = f"{'-' * 74}\n"
ENDED = "srun: error: node2: task 1: Exited with exit code 1\n"


def test_an_error_before_more_epochs_is_no_root_line():
    assert explain_output(Output(FAILED + STEPS)).root is None


def test_an_error_before_more_epochs_is_no_known_cause_either():
    found = explain_output(
        Output("NCCL WARN Call to ibv_reg_mr failed with error Cannot allocate memory\n" + STEPS)
    )
    assert [known for known in found.findings if known.severity == "error"] == []


@every_row("end", [ENDED, FAILED.replace("Device", "Disk"), "sacct: 8 FAILED 1:0\n"])
def test_an_error_before_more_epochs_counts_if_the_job_ends_badly(end):
    assert told(FAILED + STEPS + end)[0]


def test_one_line_of_progress_may_be_that_of_another_rank():
    assert told(FAILED + "epoch 3 loss 0.3000\n")[0].startswith("OSError")


def test_the_error_after_a_survived_one_is_the_root_line():
    last = TRACEBACK.format("it", "ValueError: batch of 7")
    assert told(FAILED + STEPS + last)[0] == "ValueError: batch of 7"


def test_progress_of_another_rank_shows_nothing():
    text = "".join(f"0: {line}\n" for line in FAILED.splitlines()) + "".join(
        f"1: {x}\n" for x in STEPS.splitlines()
    )
    assert told(text)[0].startswith("0: OSError")


def test_an_exception_that_python_ignores_is_no_root_line():
    assert (
        explain_output(Output(f"Exception ignored in: <function X.__del__ at 0x7f>\n{FAILED}")).root is None
    )


@every_row(
    "words",
    [
        "WARNING: no port is active; the device is not supported",
        "odd: error 4\nThis is a warning and the job goes on",
    ],
)
def test_a_message_between_rules_that_only_warns_is_no_root_line(words):
    assert explain_output(Output(f"{RULE}{words}\n{RULE}rank 0 of 2\n")).root is None


def test_a_message_between_rules_that_reports_an_error_is_the_root_line():
    assert told(f"{RULE}There are not enough slots available in the system\n{RULE}")[1] == "mpi"


def test_an_error_of_slurmstepd_before_output_of_the_program_is_no_root_line():
    line = "slurmstepd-node1: error: task/cgroup: task[0] unable to set taskset '0x0'\n"
    assert (told(line)[1], explain_output(Output(line + "hello\n")).root) == ("scheduler-start", None)


LOG = "2026-11-02 08:00:00,316"


@every_row(
    "text",
    [
        f"{FAILED}x is not there, falling back to y\nsum 3\n",
        f"{FAILED}retrying\nmetrics sent\n",
        f"{FAILED}\ncontinuing without it\n{FAILED}retrying\nsum 3\n",
        f"{LOG} ERROR no room for a batch of 8\n{LOG} INFO a batch of 4 fits\n{LOG} INFO finished\n",
        "bash: line 1: module: command not found\nno modules, using the system's CUDA\nsum 3\n",
        "rm: cannot remove 'old.pt': No such file or directory\nsum 3\nall done\n",
        "mkdir: cannot create directory 'out': File exists\nsum 3\n0 errors, done.\nGPU 0\n",
        "no TPU, going on: Backend 'tpu' failed to initialize: cannot open libtpu.so\nfinished\n",
        "V1102 08:00:00.9 20 torch/guards.py:4760] [1/1] triggered by the guard failure(s):\n16 0.05\n",
    ],
)
def test_an_error_after_which_the_program_says_that_it_continues_is_no_root_line(text):
    found = explain_output(Output(text))
    assert (found.root, [known for known in found.findings if known.severity == "error"]) == (None, [])


@every_row(
    ("more", "root"),
    [
        ("falling back to y\n", FAILED),  # the program ends after this line
        ("sum 3\nall done\n", FAILED),  # a job script may ignore the program's exit status
        ("not retrying\nsum 3\n", FAILED),
        ("restarting failed, retrying\nsum 3\n", FAILED),
        ("retrying\nstep 1\ngiving up\n", FAILED),
        (f"retrying\nstep 1\n{FAILED}", FAILED),  # the same fault occurs again
        ("retrying\nstep 1\nValueError: batch of 7\n", FAILED),
        (f"retrying\nstep 1\n{ENDED}", FAILED),
    ],
)
def test_an_error_counts_if_the_output_does_not_show_that_the_program_continued(more, root):
    assert told(FAILED + more)[0] == root.splitlines()[-1]


@every_row(
    "text",
    [
        f"{LOG} ERROR no room for a batch of 8\nfinished\n",  # not a line of the same logger
        "bash: line 3: trainer: command not found\nfinished\n",
        "cp: cannot stat 'in.dat': No such file or directory\nall done\n",
    ],
)
def test_an_error_before_the_end_of_a_job_script_is_the_root_line(text):
    assert told(text)[0] == text.splitlines()[0]


def test_a_program_that_fails_after_an_error_of_slurmstepd_is_the_failure():
    energy = "slurmstepd: error: slurm_get_node_energy: Socket timed out on send/recv operation\n"
    copied = "./copy.sh: line 124: /bin/mv: Input/output error"
    assert told(energy + copied + "\n")[0] == copied
    assert told(energy + STEPS_BEFORE)[:2] == ("", "")
