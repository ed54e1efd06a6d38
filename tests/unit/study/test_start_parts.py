"""Test the durations of a job's start, from the job script's times and the trainer's metrics."""

import json

from tests.unit.tables import every_row
from toolkit.report.start_table import start_text
from toolkit.study.start_parts import job_start

T = 1_795_694_000.0
SCRIPT = f"script {T + 2}\ncopy {T + 2.5}\ncopied {T + 6}\npreflight {T + 6.5}\nranks {T + 9}\noutput 120\n"
RANK = {"container": 9.5, "interpreter": 9.75, "imports": 14, "rendezvous": 15, "first_batch": 18}


def metrics(reads=None, **changes):
    moments = {k: T + v for k, v in {**RANK, **changes}.items() if v is not None}
    more = {} if reads is None else {"reads": reads}
    return b'{"record": "header"}\n' + json.dumps({"record": "start", **moments, **more}).encode() + b"\n"


def parts(*words, **more):
    found = job_start("j", *words, **more)
    return {one.part: one.seconds for one in found.parts}


def test_all_parts_add_up_to_the_time_of_the_first_batch():
    found = job_start("mnist-1", SCRIPT, metrics(1234), T, (2, 4))
    assert {one.part: one.seconds for one in found.parts} == {
        "queue": 2.0,
        "job script": 1.0,
        "copy": 3.5,
        "preflight": 2.5,
        "mount": 0.5,
        "interpreter": 0.25,
        "imports": 4.25,
        "rendezvous": 1.0,
        "first batch": 3.0,
    }
    assert sum(one.seconds for one in found.parts) == found.first_step_seconds == 18.0
    assert (found.nodes, found.ranks, found.reads, found.preflight_seconds) == (2, 4, 1234, 2.5)


@every_row(
    ("missing", "names"),
    [
        (["container"], ["mount and interpreter", "imports", "rendezvous", "first batch"]),
        (["imports"], ["mount", "interpreter", "imports and rendezvous", "first batch"]),
        (["container", "imports"], ["mount and interpreter", "imports and rendezvous", "first batch"]),
    ],
)
def test_parts_without_a_border_are_one(missing, names):
    found = parts(SCRIPT, metrics(**dict.fromkeys(missing)))
    assert list(found)[3:] == names
    assert sum(found.values()) == 16.0


def test_a_program_of_the_user_has_the_parts_before_it():
    assert list(parts(SCRIPT, b"", T)) == ["queue", "job script", "copy", "preflight"]
    found = parts(f"{SCRIPT}container {T + 9.25}\n", b"", T)
    assert list(found)[-1] == "mount"
    text = start_text(job_start("j", SCRIPT, b"", T))
    assert "Only toolkit's trainers record" in text


@every_row(
    "times",
    [
        SCRIPT.replace(".", ","),  # EPOCHREALTIME with a decimal comma, as in a German locale
        SCRIPT + "garbage\nranks soon\nscript 12\n",
        f"script {T}\nranks {T + 1}\n" + SCRIPT,  # an elastic job that started its ranks twice
    ],
)
def test_odd_lines_change_nothing(times):
    assert parts(times, metrics(), T) == parts(SCRIPT, metrics(), T)


def test_marks_of_ranks_before_a_restart_do_not_count():
    old = {name: value - 100 for name, value in RANK.items()}
    assert list(parts(SCRIPT, metrics(**old), T)) == ["queue", "job script", "copy", "preflight"]


@every_row("content", [b'{"record": "start", "imports"', b'{"record": "start", "imports": "x"}\n', b"\xff"])
def test_damaged_metrics_leave_the_parts_of_the_script(content):
    assert list(parts(SCRIPT, content, T)) == ["queue", "job script", "copy", "preflight"]


def test_a_script_that_never_started_has_no_start():
    assert job_start("j", "", b"", T) is None


def test_the_text_fits_a_terminal_and_tells_the_preflight_apart():
    text = start_text(job_start("mnist-20261126-115700-ce1075", SCRIPT, metrics(1234), T, (2, 4)))
    assert "first batch: 18.00 s after submission\n" in text
    assert "\nfirst batch minus 2.50 s for the preflight (a short test): 15.50 s\n" in text
    assert "1,234" in text
    assert all(len(line) <= 80 for line in text.splitlines())
    assert "(nodes: 2, ranks: 4)" in text
