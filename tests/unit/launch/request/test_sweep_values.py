"""Test the tasks of a sweep: the meaning of values, refused values, and the values in each task."""

import subprocess

import pytest

from tests.unit.launch.examples import GLOO, MPIRUN, SRUN, job_script, spec
from tests.unit.launch.scripts import given_to, run
from tests.unit.tables import every_row
from toolkit.errors import BadInput
from toolkit.launch.request import sweep_values
from toolkit.launch.request.complete import complete_job
from toolkit.launch.request.layers import OPTION, check_layer, merge

HOSTILE = [
    "a b", "it's", '"', "$(touch broke)", "`touch broke`", "; touch broke", "50%", "%j", "\\", "&", "ü☃", "*",
    "~", "",
]  # fmt: skip


def written(values):
    """Return the values for ``NAME=VALUES``: in quotation marks, separated by commas."""
    return ",".join(f'"{value.replace(chr(34), chr(34) * 2)}"' for value in values)


@every_row(
    ("text", "values"),
    [
        ("0.1,0.01", ["0.1", "0.01"]),
        ("1..3", ["1", "2", "3"]),
        ("0..10..5,7", ["0", "5", "10", "7"]),
        ("-1..1", ["-1", "0", "1"]),
        ("08..11", ["08", "09", "10", "11"]),
        ('"64,32","1..3"', ["64,32", "1..3"]),
        ('"say ""hi""",""', ['say "hi"', ""]),
        ("../data,a=b", ["../data", "a=b"]),
        ("relu", ["relu"]),
    ],
)
def test_what_values_mean(text, values):
    assert sweep_values.fault(f"x={text}") == ""
    assert [row["x"] for row in sweep_values.rows([f"x={text}"])] == values


@every_row(
    ("item", "said"),
    [
        ("lr", "write NAME=VALUE,VALUE"),
        ("=1", "write NAME=VALUE,VALUE"),
        ("a b=1", "write NAME=VALUE,VALUE"),
        ("lr=", "a value is empty"),
        ("lr=1,,2", "a value is empty"),
        ("lr=1,1", "1 appears twice"),
        ("n=1..3,2", "2 appears twice"),
        ("n=3..1", "the range 3..1 is reversed"),
        ("n=1..9..0", "1..9..0: the step must be at least 1"),
        ("n=0.1..0.5", "0.1..0.5: a range needs whole numbers"),
        ("n=1..999999999", "at most 500 values"),
        ("n=a\nb", "a line break or a control character"),
    ],
)
def test_what_is_refused(item, said):
    assert said in sweep_values.fault(item)
    with pytest.raises(BadInput, match="--sweep"):
        check_layer({"sweep": [item]}, OPTION, {}, strict=False)


def test_every_combination_is_a_task_and_the_last_name_changes_first():
    found = [sweep_values.describe_values(row) for row in sweep_values.rows(["lr=0.1,0.01", "seed=1..2"])]
    assert found == ["lr=0.1 seed=1", "lr=0.1 seed=2", "lr=0.01 seed=1", "lr=0.01 seed=2"]
    assert sweep_values.rows([]) == []


def completed_from(**said):
    return complete_job(merge([check_layer({"command": ["x"], **said}, OPTION, {}, strict=False)]), None)


def test_a_sweep_is_an_array():
    found = completed_from(sweep=["lr=1,2", "n=1..5"], sweep_parallel=3)
    assert (found.job.array, found.origins["array"]) == ("0-9%3", "sweep")
    assert completed_from(sweep=["lr=1"]).job.array == "0-0"


@every_row(
    ("said", "message"),
    [
        ({"sweep": ["n=1..30", "m=1..30"]}, "--sweep: 900 array tasks; toolkit supports at most 500"),
        ({"sweep": ["n=1", "n=2"]}, "--sweep n: n also sets the variable TOOLKIT_SWEEP_N"),
        ({"sweep": ["a-b=1", "A.b=2"]}, "--sweep A.b: a-b also sets the variable TOOLKIT_SWEEP_A_B"),
        ({"sweep": ["n=1"], "array": "0-3"}, "--array: cannot be combined with a sweep"),
        ({"sweep_parallel": 2}, "--sweep-parallel: needs --sweep"),
    ],
)
def test_what_does_not_fit_together(said, message):
    with pytest.raises(BadInput) as error:
        completed_from(**said)
    assert error.value.message.startswith(message)


@every_row("plan", [SRUN, GLOO, MPIRUN])
def test_each_task_gets_its_values_whatever_is_in_them(plan, tmp_path):
    items = (f"x={written(HOSTILE)}", "n=1,2")
    command = ("prog", "{x}", "--n={n}/{x}", "${n} {other} $n")
    made = spec(command=command, sweep=items, array="0-27", directory=str(tmp_path / "run"), preflight=False)
    script = job_script(made, plan, "why")
    for task in (0, 1, 8, 20, 27):
        row = sweep_values.rows(items)[task]
        ran = run(script, tmp_path, SLURM_ARRAY_TASK_ID=str(task))
        assert ran.status == 0, ran.said
        words = next(call for call in ran.calls if call[-3:-2] == [row["x"]])
        assert words[-4:] == ["prog", row["x"], f"--n={row['n']}/{row['x']}", "${n} {other} $n"]
        folder = tmp_path / "run" / str(task)
        assert given_to(folder, "TOOLKIT_SWEEP_X") == row["x"]
        assert given_to(folder, "TOOLKIT_SWEEP_N") == row["n"]
    assert not [*tmp_path.rglob("broke")]


def test_a_task_that_the_sweep_does_not_have_ends_with_a_line(tmp_path):
    made = spec(command=("prog", "{n}"), sweep=("n=1,2",), array="0-1", directory=str(tmp_path / "run"))
    ran = run(job_script(made, SRUN, "why"), tmp_path, SLURM_ARRAY_TASK_ID="12")
    assert (ran.status, [call for call in ran.calls if "prog" in call]) == (1, [])
    assert "job: the sweep has no task 12" in ran.said


def test_the_table_of_a_script_is_readable_by_any_shell(tmp_path):
    for line in sweep_values.lines([f"x={written(HOSTILE)}"]):
        done = subprocess.run(["sh", "-c", f'{line}; printf %s "$TOOLKIT_SWEEP_X"'], capture_output=True)
        assert done.stdout.decode() in HOSTILE
        assert not done.stderr
