"""Test how `toolkit explain` finds the exception that ended a rank, a child process or a command."""

from tests.unit.engine.logs.test_root import labelled, told
from tests.unit.tables import every_row
from toolkit.engine.logs.explanation import explain_output
from toolkit.engine.logs.joblines import Output

TRACEBACK = 'Traceback (most recent call last):\n  File "{}", line 9, in run\n    {}\n{}\n'
USER = "/home/bo/main.py"
LOST = TRACEBACK.format(
    USER,
    "dist.barrier()",
    "RuntimeError: [gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.4]:5333",
)
PROGRESS = "".join(f"step {n} loss 0.{n}1\n" for n in range(600))
FAILED = (
    "E1127 18:45:03.9 168 elastic/multiprocessing/api.py:1002] failed (exitcode: 1) local_rank: {} (pid: 8)\n"
)


def raised(exception: str, code: str = "step(batch)") -> str:
    return TRACEBACK.format(USER, code, exception)


def tagged(rank: int, text: str) -> str:
    return "".join(f"[rank{rank}]: {line}\n" for line in text.splitlines())


@every_row(
    ("error", "class_"),
    [
        ("CalledProcessError: Command '['ffmpeg', 'a.mp4']' died with <Signals.SIGILL: 4>.", "signal"),
        ("CalledProcessError: Command '['./prepare']' returned non-zero exit status 3.", "exit-status"),
    ],
)
def test_the_failed_command_of_a_rank_is_the_root_line(error, class_):
    command = raised(f"subprocess.{error}", "subprocess.run(command, check=True)")
    text, found, rank = told(tagged(0, LOST) + tagged(1, command) + FAILED.format(1))
    assert (text.removeprefix("[rank1]: "), found, rank) == (f"subprocess.{error}", class_, "1")


def test_the_words_of_a_failed_command_are_the_root_line():
    command = raised(
        "subprocess.CalledProcessError: Command '['./prepare']' returned non-zero exit status 2."
    )
    reason = "prepare: cannot open shard 7: bad magic"
    found = told(f"{reason}\n{tagged(0, LOST)}{tagged(1, command)}{FAILED.format(1)}")
    assert found == (reason, "unknown-error", "1")


@every_row(
    ("head", "child", "parent"),
    [
        ("Process SpawnProcess-1:2:", "KeyError: 'de-AT'", "EOFError"),
        (
            "Process reader of shards:",
            "IndexError: list index out of range",
            "multiprocessing.context.TimeoutError",
        ),
        (
            "Exception in initializer:",
            "PIL.Image.DecompressionBombError: image has 5 pixels",
            "concurrent.futures.process.BrokenProcessPool: A process was terminated abruptly",
        ),
    ],
)
def test_the_exception_of_a_child_process_is_the_root_line(head, child, parent):
    log = f"{head}\n{raised(child)}{PROGRESS}{raised(parent)}"
    assert told(log)[:2] == (child, "python-exception")


WATCHDOG = (
    "[rank0]:[E1127 10:00:00.1 ProcessGroupNCCL.cpp:616] [Rank 0] Watchdog caught collective operation"
    " timeout: WorkNCCL(SeqNum=9, OpType=ALLREDUCE) ran for 600001 milliseconds before timing out.\n"
)


@every_row(
    ("error", "later"),
    [
        (
            labelled(1, raised("ValueError: no labels")),
            "JaxRuntimeError: DEADLINE_EXCEEDED: Barrier timed out.",
        ),
        (labelled(1, tagged(1, raised("ValueError: no labels"))), WATCHDOG),
        (labelled(1, raised("ValueError: no labels")), LOST),
    ],
)
def test_the_exception_that_ended_a_rank_is_the_root_line_however_early(error, later):
    text, class_, rank = told(error + labelled(0, PROGRESS) + labelled(0, later))
    assert (text.endswith("ValueError: no labels"), class_, rank) == (True, "python-exception", "1")


@every_row(
    "error",
    [
        labelled(1, raised("ValueError: no labels") + PROGRESS),
        labelled(1, "Exception in thread Thread-3 (beat):\n" + raised("ValueError: no labels")),
    ],
)
def test_an_early_exception_that_ended_no_rank_is_not_the_root_line(error):
    root = explain_output(Output(error + labelled(0, PROGRESS) + labelled(0, LOST))).root
    assert root is not None
    assert "Connection closed by peer" in root.text


def test_a_message_of_tensorflows_start_is_not_the_last_word_of_a_rank():
    started = (
        "1: WARNING: All log messages before absl::InitializeLog() is called are written to STDERR\n"
        "1: I0000 00:00:1795817842.246456     621 port.cc:153] oneDNN custom operations are on.\n"
    )
    ended = "srun: error: node2: task 1: Exited with exit code 1\nsrun: error: node1: task 0: Terminated\n"
    own = "1: the mesh of this rank has no cells\n"
    reason = "0: data distribution: there are only 0 items for 2 ranks\n"
    assert told(reason + started + ended)[0] == reason.strip()
    assert told(reason + own + started + ended)[0] == own.strip()
    assert told(started + ended)[0].startswith("srun: error: node2: task 1")
