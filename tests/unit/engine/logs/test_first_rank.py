"""Test which line and rank of a job failed first, and which lines a program survives."""

from tests.unit.engine.logs.test_root import STEPS, TRACEBACK, labelled, told
from tests.unit.tables import every_row
from toolkit.engine.logs.clues import strip_label
from toolkit.engine.logs.explanation import explain_output
from toolkit.engine.logs.joblines import Output

LOST = "RuntimeError: [/pytorch/gloo/pair.cc:525] Connection closed by peer [10.0.0.2]:4711"
CANCELLED = "0: slurmstepd-n1: error: *** STEP 8.0 ON n1 CANCELLED AT 2026-11-02T08:00:00 ***"


def test_a_rank_that_exits_without_a_word_is_named_where_the_others_only_lost_it():
    ended = "srun: error: n2: task 3: Exited with exit code 5"
    text = STEPS + labelled(0, TRACEBACK.format("it", LOST)) + f"{ended}\nsrun: Terminating StepId=8.0\n"
    assert told(text) == (ended, "exit-status", "3")


def test_a_wait_until_a_time_limit_is_the_cause_of_a_cancelled_step():
    waited = "[rank0]:[E ProcessGroupNCCL.cpp:632] [Rank 0] Watchdog caught collective operation timeout"
    assert told(f"{STEPS}{waited}\n{CANCELLED}\n") == (waited, "nccl-or-rccl", "0")
    assert told(f"{STEPS}{CANCELLED}\n{waited}\n")[1] == "cancelled"


@every_row(
    ("signal", "name", "class_"),
    [(6, "SIGABRT", "signal"), (9, "SIGKILL", "signal"), (11, "SIGSEGV", "signal")],
)
def test_a_rank_that_torchrun_stopped_is_not_the_first_to_fail(signal, name, class_):
    text = (
        f"[rank0]: {LOST}\n"
        f"failed (exitcode: -{signal}) local_rank: 1 (pid: 12) of binary: /usr/bin/python\n"
        "  rank      : 0 (local_rank: 0)\n  exitcode  : -15 (pid: 11)  (SIGTERM)\n"
        "  traceback : Signal 15 (SIGTERM) received by PID 11\n"
        f"  rank      : 1 (local_rank: 1)\n  exitcode  : -{signal} (pid: 12)  ({name})\n"
    )
    line, found, rank = told(text)
    assert (f"(exitcode: -{signal})" in line, found, rank) == (True, class_, "1")


@every_row(
    "error",
    ["ERROR on proc 3: Bond atoms 12 13 missing on proc 3", "ERROR: Lost atoms: original 40 current 39"],
)
def test_the_error_before_a_call_of_mpi_abort_is_the_root_line(error):
    lines = [f"{error} (x.cpp:59)", "Last command: run 900", "-" * 74]
    text = "\n".join([*lines, "MPI_ABORT was invoked on rank 3 in communicator X"])
    assert told(f"{text}\n")[::2] == (lines[0], "3")


@every_row("line", ["ERROR 09-27 06:46:46 x.py:1] no room for it", "ERROR [x.py:1] no room for it"])
def test_a_level_before_a_time_or_file_is_a_label(line):
    assert strip_label(line).endswith("no room for it")
    assert strip_label("ERROR on proc 7: no room") == "ERROR on proc 7: no room"


WATCHDOG = "[E1102 ProcessGroupNCCL.cpp:607] [Rank {0}] Watchdog caught collective operation timeout: X"


def test_a_rank_that_stops_itself_after_a_time_limit_is_named_on_the_second_node_too():
    waits = [f"[rank{rank}]:{WATCHDOG.format(rank)}" for rank in (7, 6)]
    ended = "failed (exitcode: -6) local_rank: 1 (pid: 12) of binary: /usr/bin/python"
    assert told("\n".join([*waits, ended]) + "\n") == (waits[0], "nccl-or-rccl", "7")


def test_the_first_of_several_lines_in_which_a_rank_lost_others_is_the_root_line():
    lines = [
        f"[rank0]:{WATCHDOG.format(0)}",
        "[rank0]:[E1102 x.cpp:1] Exception detected by watchdog at work: 8",
    ]
    ended = "srun: error: n1: task 0: Exited with exit code 1"
    assert told("\n".join([*lines, ended]) + "\n")[0] == lines[0]


def test_an_aborted_communicator_is_a_consequence_of_the_time_limit():
    raised = TRACEBACK.format("it", "RuntimeError: NCCL communicator was aborted on rank 2.")
    text = f"[rank2]:{WATCHDOG.format(2)}\n" + "".join(f"[rank2]: {line}\n" for line in raised.splitlines())
    assert told(text) == (f"[rank2]:{WATCHDOG.format(2)}", "nccl-or-rccl", "2")


TABLE = """\
Failures:
[1]:
  rank      : 11 (local_rank: 3)
  exitcode  : -9 (pid: 19)
  error_file: <N/A>
----------------------
Root Cause (first observed failure):
[0]:
  rank      : 9 (local_rank: 1)
  exitcode  : -9 (pid: 12)
  error_file: <N/A>
"""


def test_the_table_of_torchrun_tells_the_rank_that_failed_first_in_the_whole_job():
    assert told(TABLE) == ("exitcode  : -9 (pid: 12)", "signal", "9")
    report = "failed (exitcode: -9) local_rank: 1 (pid: 12) of binary: /usr/bin/python"
    assert told(f"{report}\n{TABLE}") == (report, "signal", "9")
    assert told(f"{report}\n")[2] == "1"
    assert told(f"{TABLE}srun: error: n1: task 0: Exited with exit code 1\n")[2] == "9"


def test_the_rank_for_which_others_waited_in_a_barrier_is_named():
    text = (
        "[rank0]:[E1102 ProcessGroupGloo.cpp:67] [Rank 0]: Rank 4 failed to pass monitoredBarrier in 9 ms\n"
    )
    assert told(text)[2] == "4"


def test_the_last_words_of_a_rank_come_before_a_crash_of_mpirun_itself():
    text = (
        "[1,0]<stdout>:step 3 loss 0.2\n[1,2]<stdout>:mesh has no cells\nPrimary job  terminated normally but"
        " 1 process returned\na non-zero exit code.\n[n1:9] *** Process received signal ***\n"
        "[n1:9] Signal: Segmentation fault (11)\n"
    )
    assert told(text) == ("[1,2]<stdout>:mesh has no cells", "exit-status", "2")


def test_the_task_that_no_longer_answers_is_named_not_the_one_that_reports_it():
    text = (
        "0: E1102 coordination_service.cc:9] UNAVAILABLE: The following tasks are unhealthy "
        "(stopped sending heartbeats):\n0: 6\n0: The tasks have crashed.\n"
    )
    found = explain_output(Output(text))
    assert found.root
    assert (found.root.rank, found.root.waited) == ("6", False)


@every_row(("number", "kept", "dropped"), [(9, "Signal 9 ", "Signals 4"), (11, "Signals 4", "Signal 9 ")])
def test_what_is_said_of_a_signal_is_about_that_signal(number, kept, dropped):
    found = explain_output(
        Output(f"mpirun noticed that process rank 1 exited on signal {number} (x).\n")
    ).fault
    assert found
    assert (kept in found.means, dropped in found.means) == (True, False)
    assert all(f"signal {number}," in step for step in found.fix if step.startswith("For signal"))


def test_the_signal_of_a_rank_that_the_launcher_stopped_is_not_explained():
    failed = "failed (exitcode: 1) local_rank: 0 (pid: 12) of binary: /usr/bin/python"
    text = f"[rank0]: {LOST}\n{failed}\n  exitcode  : -15 (pid: 11)  (SIGTERM)\n"
    assert explain_output(Output(text)).codes == ()


def test_a_job_that_was_cancelled_while_all_ranks_ran_can_be_submitted_again():
    text = f"{STEPS}srun: Job step aborted: Waiting up to 7 seconds for job step to finish.\n{CANCELLED}\n"
    found = explain_output(Output(f"{text}srun: error: n2: task 1: Terminated\n"))
    assert found.fault
    assert (found.fault.id, found.retry, found.root and found.root.rank) == ("cancelled", "transient", "")


def test_a_rank_that_ended_before_slurm_cancelled_the_step_is_the_fault():
    ended = "srun: error: n2: task 1: Exited with exit code 3\nsrun: Terminating StepId=8.0"
    text = f"{STEPS}{ended}\n{CANCELLED}\n"
    found = explain_output(Output(text))
    assert found.fault
    assert (found.fault.id, found.retry) == ("exit-status", "user")


@every_row(
    ("text", "root", "class_"),
    [
        (
            "usage: fit [-h] [--epochs N]\nfit: error: argument --epochs: invalid int value: 'ten'\n",
            "fit: error: argument --epochs",
            "user-configuration",
        ),
        (
            "stage: error: cannot copy /data/a.h5: No space left on device\n",
            "stage: error",
            "file-system-or-quota",
        ),
        (
            "tar: a: Wrote only 5 of 10240 bytes\ntar: Exiting with failure status due to previous errors\n",
            "Wrote only 5 of",
            "file-system-or-quota",
        ),
        (
            "srun: error: Could not open stdout file /home/ann/log/1.out: Permission denied\n",
            "stdout file",
            "file-system-or-quota",
        ),
        (
            "Error: runc: executable file `solve` not found in $PATH: No such file or directory\n",
            "executable file `solve`",
            "program-start",
        ),
        (
            "[1,2]<stderr>:A rank is stalled for longer than 9 seconds. Will shutdown.[1,2]<stderr>:\n"
            + "".join(f"[1,2]<stderr>:{line}\n" for line in TRACEBACK.format("it", LOST).splitlines())
            + "mpirun: abort is already in progress...\n[n1:3] *** Process received signal ***\n",
            "stalled for longer than 9",
            "rendezvous",
        ),
        ("[ERROR] [launch.py:3:sigkill_handler] ['a.py'] exits with return code = -11\n", "= -11", "signal"),
    ],
    ids=lambda text: text[:20],
)
def test_the_line_that_names_the_fault_is_the_root_line(text, root, class_):
    line, found, _ = told(text)
    assert (root in line, found) == (True, class_)


@every_row(
    "text",
    [
        'time="2026-11-02T08:00:00Z" level=debug msg="lookup failed: no such file or directory"\nepoch 1\n',
        "srun: debug:  propagating RLIMIT_MEMLOCK=8388608\nsrun: debug2: error opening x: not found\ndone\n",
        "wget: unable to resolve host address 'mirror'\nRetrying in 4 seconds (2 of 5)\n100% saved\n",
        "helper started\nTerminated\nsaved the model\n",
        "test_timeout (suite.Loader.test_timeout) ... expected failure\nok\n",
    ],
    ids=lambda text: text[:20],
)
def test_what_a_program_survives_is_no_failure(text):
    assert told(text) == ("", "", "")


def test_a_read_only_cgroup_is_not_a_fault_of_the_program():
    text = "error: common_cgroup_instantiate: unable to create cgroup '/sys/x' : Read-only file system\n"
    assert [found.id for found in explain_output(Output(text)).findings] == []


@every_row(
    ("head", "rank"),
    [
        ("[default1]:[rank5]:", "5"),  # a second node with four ranks
        ("[default1]: [rank5]: ", "5"),
        ("[default1]:", "1"),
        ("[rank5]:", "5"),
    ],
)
def test_the_rank_in_the_job_wins_over_the_local_rank_in_a_tag(head, rank):
    text = "".join(f"{head}{line}\n" for line in TRACEBACK.format("it", "KeyError: 'x'").splitlines())
    assert told(text) == (f"{head}KeyError: 'x'", "python-exception", rank)


STOPPED = "failed (exitcode: -6) local_rank: 2 (pid: 12) of binary: /usr/bin/python\n"
ROW = "  rank      : 6 (local_rank: 2)\n  exitcode  : -6 (pid: 12)\n"


@every_row(
    ("lines", "rank"),
    [
        (ROW, "6"),
        (ROW.replace("6", "5").replace("-5", "-15") + ROW, "6"),  # torchrun stopped rank 5
        (STOPPED, "2"),
        (f"{STOPPED}Root Cause (first observed failure):\n[0]:\n{ROW}", "6"),
    ],
)
def test_the_rank_of_torchruns_table_wins_over_the_local_rank(lines, rank):
    assert told(f"free(): double free detected in tcache 2\n{lines}")[1:] == ("signal", rank)


@every_row(("joined", "waited"), [(3, True), (8, False)])
def test_a_rank_waits_for_others_only_if_fewer_joined_than_expected(joined, waited):
    said = "Timed out initializing process group in store based barrier on rank: 0"
    found = explain_output(Output(f"RuntimeError: {said}, (world_size=4, worker_count={joined})\n"))
    assert found.root is not None
    assert found.root.waited is waited


CHECKPOINT = """\
[rank0]: Traceback (most recent call last):
[rank0]:   File "/home/ada/train.py", line 13, in <module>
[rank0]:     dcp.load(state)
[rank0]: torch.distributed.checkpoint.api.CheckpointException: CheckpointException ranks:dict_keys([{}])
"""
OF_RANK = """\
[rank0]: Traceback (most recent call last): (RANK {})
[rank0]:   File "/venv/lib/python3.12/site-packages/torch/distributed/checkpoint/utils.py", line 193, in x
[rank0]:     local_data = map_fun()
[rank0]: RuntimeError: no key {}
"""


@every_row(("ranks", "first", "rank"), [("3", (3,), "3"), ("0, 3", (0, 3), "0"), ("2, 3", (2, 3), "2")])
def test_the_exception_in_a_checkpoint_exception_is_the_root_line(ranks, first, rank):
    text = CHECKPOINT.format(ranks) + "".join(OF_RANK.format(one, one) for one in first)
    found = explain_output(Output(text))
    assert found.root is not None
    assert (found.root.text, found.root.rank) == (f"[rank0]: RuntimeError: no key {first[0]}", rank)
    assert found.root.frame == "/home/ada/train.py:13, in <module>"
