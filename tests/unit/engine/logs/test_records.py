"""Test how `toolkit explain` reads structured log lines: JSON objects and fields such as `level=error`."""

from tests.unit.engine.logs.test_root import STEPS, told
from tests.unit.tables import every_row
from toolkit.engine.logs.explanation import explain_output
from toolkit.engine.logs.joblines import Output
from toolkit.engine.logs.records import read_record

RAISED = r"Traceback (most recent call last):\n  File \"a.py\", line 3\nZeroDivisionError: division by zero"


@every_row(
    ("line", "class_", "rank"),
    [
        ('{"event": "the checkpoint has 12 layers", "severity": "CRITICAL"}', "unknown-error", ""),
        (
            '{"levelname": "ERROR", "message": "stopped", "exc_info": "' + RAISED + '"}',
            "python-exception",
            "",
        ),
        ('{"level": "ERROR", "message": "CUDA out of memory.", "rank": 2}', "out-of-memory", "2"),
        ('1: {"lvl":"fatal","msg":"no shard for worker 5"}', "unknown-error", "1"),
        ('ts=2026-11-27T10:00:00Z lvl=eror rank=3 msg="600 words"', "unknown-error", "3"),
        ('level=error msg="shard 4" err="open /d: no such file or directory"', "file-system-or-quota", ""),
    ],
)
def test_a_record_with_the_level_of_an_error_is_the_root_line(line, class_, rank):
    assert told(f"{STEPS}{line}\n") == (line, class_, rank)


@every_row(
    "line",
    [
        '{"level":"info","msg":"validation failed on 0 of 400","errors":0}',
        '{"level":"warning","message":"could not read the cache"}',
        'level=info msg="3 failed attempts"',
        '{"loss": 0.2, "error": 0.7}',
    ],
)
def test_a_record_with_another_level_or_with_metrics_reports_no_failure(line):
    assert explain_output(Output(f"{STEPS}{line}\n")).root is None


def test_a_record_before_the_traceback_of_another_rank_stays_a_root_line():
    lost = "RuntimeError: [gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.4]:5333"
    error = '{"level": "fatal", "rank": 1, "message": "31999 rows for 32000 entries"}'
    head = '[rank0]: Traceback (most recent call last):\n[rank0]:   File "/a.py", line 9, in <module>\n'
    assert told(f"{error}\n{head}[rank0]: {lost}\n") == (error, "unknown-error", "1")


@every_row(
    ("line", "words"),
    [
        ('{"level": "error", "message": "no end", "file": "a', ("error", "no end", "")),
        ('time="2026-11-27T10:00:00Z" level=error msg="written by podman"', None),
        ("step=3 level=high msg=x", None),
        ("a level of error=3", None),
    ],
)
def test_a_record_has_a_level_and_a_message(line, words):
    assert read_record(line) == words
