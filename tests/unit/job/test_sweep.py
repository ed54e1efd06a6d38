"""Test sweeps: unused values, the limits of the number of tasks, the dry run, and the table of results."""

import json

import msgspec
import pytest
from click.testing import CliRunner

from tests.unit.launch.examples import RECORD, SPEC
from tests.unit.launch.recorded import Recorded
from tests.unit.report.trainings import COMPLETE
from tests.unit.tables import every_row
from toolkit import app
from toolkit.cli import jobs as jobs_cli
from toolkit.cli import report as report_cli
from toolkit.errors import BadInput, CheckFailed, Missing
from toolkit.job import places
from toolkit.job.project.code import code_of
from toolkit.job.project.sweep_checks import check_sweep, tell_sweep
from toolkit.job.request.flags import Flags
from toolkit.job.request.layering import merge_request
from toolkit.job.running.fetch import in_words, list_results
from toolkit.job.running.follow import watch_job
from toolkit.job.running.output import texts
from toolkit.launch.sites.queue import array_faults
from toolkit.launch.tracking import follow, records
from toolkit.model.job import JobTask
from toolkit.run.local import LocalRunner
from toolkit.scheduler.pbs import header
from toolkit.study.figures import best, figures


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    for variable in ("XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(variable, str(tmp_path / "elsewhere"))
    here = tmp_path / "work"
    here.mkdir()
    monkeypatch.chdir(here)
    (here / "plain.py").write_text("import sys\nprint(sys.argv)\n")
    (here / "reads.py").write_text("import net\n")
    (here / "net.py").write_text("import os\nlr = os.environ['TOOLKIT_SWEEP_LR']\n")
    (here / "run.sh").write_text('python plain.py --lr "$TOOLKIT_SWEEP_LR"\n')
    return here


def checked(file, *words, sweep=("lr=0.1,0.2",), **flags):
    job = merge_request(
        {"image": "my.sif", "sweep": list(sweep)} | ({"trainer": file} if file else {}), words
    ).job
    check_sweep(job, code_of(job, Flags()), Flags(**flags))
    return job


@every_row(
    ("file", "words"),
    [
        ("plain.py", ("--lr", "{lr}")),
        ("plain.py", ("--optimizer=sgd:{lr}",)),
        ("reads.py", ()),
        (None, ("bash", "run.sh")),
        (None, ("sh", "-c", "echo $TOOLKIT_SWEEP_LR")),
        (None, ("solver", "in.dat")),
        ("mnist", ("--learning-rate", "{lr}")),
    ],
)
def test_a_value_that_reaches_the_program_is_let_through(file, words):
    checked(file, *words)


@every_row(
    ("file", "words"),
    [
        ("plain.py", ()),
        ("plain.py", ("--lr", "{lrr}")),
        ("plain.py", ("--lr", "${lr}")),
        (None, ("python", "plain.py")),
        ("mnist", ()),
    ],
)
def test_a_value_that_reaches_nothing_is_refused(file, words):
    with pytest.raises(CheckFailed) as error:
        checked(file, *words)
    assert error.value.message.startswith("--sweep lr: ")
    assert "-- --lr {lr}" in error.value.fix
    checked(file, *words, force=True)


def test_the_message_names_every_value_that_is_missing():
    with pytest.raises(CheckFailed) as error:
        checked("plain.py", "--lr", "{lr}", sweep=["lr=1,2", "seed=1..3", "batch=8,16"])
    assert error.value.message == (
        "--sweep seed: plain.py does not use the value, so the value would not change any task"
    )
    assert error.value.fix == (
        "put {seed} into the command, such as `-- --seed {seed} --batch {batch}`; "
        "or read TOOLKIT_SWEEP_SEED in the program"
    )


class Heard:
    def __init__(self):
        self.steps, self.notices = [], []
        self.step, self.notice = self.steps.append, self.notices.append


def test_the_first_tasks_are_shown_before_the_job_waits():
    job, heard = checked("plain.py", "{lr}", sweep=["lr=1..20"]), Heard()
    tell_sweep(job, code_of(job, Flags()), heard, project_copied=True)
    assert heard.steps[:2] == ["Sweep of 20 tasks", "    0  lr=1"]
    assert heard.steps[-1] == "  … 8 more; the last task: lr=20"
    assert not heard.notices
    tell_sweep(job, code_of(job, Flags()), heard, project_copied=False)
    assert "write output files to $TOOLKIT_JOB_DIR" in heard.notices[0]


def test_limits_of_slurm_and_a_scheduler_without_sweeps():
    settings = {"MaxArraySize": "10"}

    def said(**changes):
        return [one.message for one in array_faults(msgspec.structs.replace(SPEC, **changes), settings)]

    assert said(sweep=("n=0..10",), array="0-10") == [
        "--sweep: the sweep has 11 tasks; Slurm allows at most 10 (MaxArraySize)"
    ]
    assert said(sweep=("n=0..9",), array="0-9") == []
    assert said(array="1-9:4,30-40:5%2") == [
        "--array 1-9:4,30-40:5%2: Slurm allows task numbers up to 9 (MaxArraySize 10)"
    ]
    with pytest.raises(BadInput, match="--sweep: toolkit does not support this option with PBS"):
        header(msgspec.structs.replace(SPEC, sweep=("n=1,2",), array="0-1"))


def test_a_job_of_this_machine_has_no_sweep(folder, monkeypatch):
    (folder / "toolkit.toml").write_text('[launch]\nsweep = ["lr=1,2"]\n')
    with pytest.raises(BadInput, match="not possible with --local, which uses no Slurm queue"):
        app.script(["solver", "{lr}"], image="x.sif", local=True)


@every_row(
    ("text", "found"),
    [
        ("0: 8/8 - 0s - loss: 0.69 - accuracy: 0.5 - val_accuracy: 0.625 - 1s/epoch",
         {"loss": 0.69, "accuracy": 0.5, "val_accuracy": 0.625}),
        ("epoch 1 loss=0.5\nepoch 2 loss=2.5e-1", {"loss": 0.25}),
        ("{'eval_loss': 0.3, 'eval_acc': 0.91, 'epoch': 3.0}", {"eval_loss": 0.3, "eval_acc": 0.91}),
        ("Test accuracy 0.97", {"test_accuracy": 0.97}),
        ("0: loss: 1.0\n1: loss: 9.0", {"loss": 1.0}),
        ("1234.5 images/s", {"images/s": 1234.5}),
        ("412.5 images/s 3 GPUs", {"images/s": 412.5}),
        ("step 50 loss: 0.25 samples/s: 9538.1", {"loss": 0.25, "samples/s": 9538.1}),
        ("{'tokens/sec': 1.2e4, 'loss': 2.1}", {"loss": 2.1, "tokens/s": 12000.0}),
        ("12 img/sec: good", {"img/s": 12.0}),
        ("lossless 3, no loss at 5 o'clock, error: file 3.txt", {}),
        ("loss: nan", {"loss": "nan"}),
    ],
)  # fmt: skip
def test_figures_of_an_output(text, found):
    assert {name: value if value == value else "nan" for name, value in figures(text).items()} == found


def test_the_best_is_the_smallest_loss_and_the_largest_of_others():
    rows = {0: {"loss": 0.3, "acc": 0.8}, 1: {"loss": 0.2, "acc": 0.7}, 2: {"loss": float("nan"), "one": 1.0}}
    assert best(rows) == {"loss": 1, "acc": 0}


@pytest.fixture
def record(monkeypatch):
    """Return the record of a sweep with four tasks: one has metrics, two have output, one is pending."""
    spec = msgspec.structs.replace(
        RECORD.spec, sweep=("lr=0.1,0.01", "seed=1,2"), array="0-3", output="output-%a.log"
    )
    kept = msgspec.structs.replace(RECORD, host="login", state="running", spec=spec)
    records.save(kept)
    states = ("COMPLETED", "COMPLETED", "FAILED", "PENDING")
    tasks = "\n".join(
        f"JobId=7 ArrayTaskId={i} JobState={state} NodeList=node1 ExitCode={i // 2}:0"
        for i, state in enumerate(states)
    )
    files = {
        f"{spec.directory}/0/metrics.jsonl": COMPLETE,
        f"{spec.directory}/output-1.log": b"0: loss: 0.5 - accuracy: 0.875\n",
        f"{spec.directory}/output-2.log": b"0: loss: 0.25\nno more\n",
    }
    there = {"login": Recorded(files, scontrol=[tasks])}

    def open_runner(host, cluster, config=None):
        if host not in there:
            raise Missing(f"{host}: cannot be reached over SSH")
        return there[host]

    monkeypatch.setattr(places, "open_runner", open_runner)
    return kept, there


def cli(command, *words):
    done = CliRunner().invoke(command, [str(word) for word in words], obj={"verbose": False, "quiet": False})
    assert done.exception is None, done.exception
    return done.stdout


def test_the_table_of_a_sweep(record, tmp_path):
    kept, there = record
    said = cli(report_cli.command, kept.key, "-o", tmp_path / "out")
    rows = [line.split() for line in said.splitlines()]
    assert rows[0][:4] == ["task", "lr", "seed", "state"]
    assert rows[2][:4] == ["0", "0.1", "1", "completed"]
    assert rows[3] == ["1", "0.1", "2", "completed", "0.5", "0.875"]
    assert rows[4] == ["2", "0.01", "1", "failed,", "exit", "code", "1", "0.25"]
    assert rows[5] == ["3", "0.01", "2", "pending"]
    assert "* marks the best value of a metric among the completed tasks" in said
    table = (tmp_path / "out" / "sweep.csv").read_text().splitlines()
    assert table[2].startswith("1,0.1,2,completed,0,0.5,0.875")
    told = json.loads((tmp_path / "out" / "sweep.json").read_text())
    assert (told["schema"], told["best"]["loss"]) == ("toolkit.sweep/1", 0)
    assert told == json.loads(cli(report_cli.command, kept.key, "--json"))
    there.clear()  # the cluster is unreachable
    assert "0.875" in cli(report_cli.command, kept.key)


def test_the_table_of_some_tasks_alone(record):
    kept, _ = record
    spec = msgspec.structs.replace(kept.spec, array="1,3")
    records.save(msgspec.structs.replace(kept, spec=spec))
    told = json.loads(cli(report_cli.command, kept.key, "--json"))
    assert [task["index"] for task in told["tasks"]] == [1, 3]


def test_a_failed_sweep_names_its_tasks_and_how_to_run_them_again(record):
    kept, _ = record
    tasks = tuple(JobTask(index=i, state="failed" if i in {1, 2} else "completed") for i in range(4))
    error = app.failure(msgspec.structs.replace(kept, state="failed", tasks=tasks))
    assert "2 of 4 tasks failed: 1 (lr=0.1 seed=2), 2 (lr=0.01 seed=1)" in error.detail
    assert f"to run the failed tasks again: toolkit launch --from-job {kept.key} --array 1,2" in error.detail


def test_following_counts_the_tasks_that_ended(record, monkeypatch):
    kept, there = record
    for name in ("_FIRST_QUERY", "_OUTPUT_SECONDS", "_SETTLE_SECONDS"):
        monkeypatch.setattr(follow, name, 0.01)

    def said(*states):
        return "\n".join(
            f"JobId=7 ArrayTaskId={i} JobState={state} NodeList=node1 ExitCode=0:0"
            for i, state in enumerate(states)
        )

    there["login"].answers["scontrol"] = [
        said("RUNNING", "PENDING", "PENDING", "PENDING"),
        said("COMPLETED", "RUNNING", "RUNNING", "PENDING"),
        said(*["COMPLETED"] * 4),
    ]
    heard = Heard()
    heard.output = heard.detail = lambda _: None
    watch_job(there["login"], kept, heard)
    assert [line for line in heard.steps if "tasks" in line] == [
        "Job 7: 1 of 4 tasks have ended",
        "Job 7: 4 of 4 tasks have ended",
    ]


def test_a_job_that_is_not_a_sweep_has_no_table():
    records.save(RECORD)
    with pytest.raises(BadInput, match="the job is not a sweep"):
        app.report_sweep(RECORD)


def test_show_and_logs_name_the_values(record):
    assert "tasks       0  completed, exit code 0 on node1; lr=0.1 seed=1; " in cli(
        jobs_cli.command, "show", "--text"
    )
    assert "==> task 1: lr=0.1 seed=2 <==\n0: loss: 0.5" in cli(jobs_cli.command, "logs")


def test_logs_of_an_ended_sweep_need_no_copy_on_this_machine(record):
    kept, there = record
    tasks = tuple(JobTask(index=i, state="completed") for i in (1, 2))
    ended = msgspec.structs.replace(kept, state="completed", tasks=tasks)
    heard = Heard()
    assert "loss: 0.5" in "".join(texts(ended, heard))
    there.clear()  # the cluster is unreachable
    copy = records.folder(kept.key) / "2" / records.OUTPUT
    copy.parent.mkdir()
    copy.write_text("a copy\n")
    assert "".join(texts(ended, heard)) == "==> task 2: lr=0.01 seed=1 <==\na copy\n"
    assert heard.notices == [
        "warning: task 1: no output on this machine, and login: cannot be reached over SSH"
    ]


def test_what_the_tasks_wrote(tmp_path):
    results = ("0/model.keras", "0/project/out.csv", "12/a/b", "output-0.log", "output-12.log")
    for name in ("0/exit-code", "0/variables.sh", "0/sweep.sh", *results):
        path = tmp_path / "run" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
    spec = msgspec.structs.replace(
        SPEC, directory=str(tmp_path / "run"), array="0-12", output="output-%a.log"
    )
    tasks = tuple(JobTask(index=index, state="completed") for index in (0, 12))
    kept = msgspec.structs.replace(RECORD, key="run-1", spec=spec, tasks=tasks)
    files = list_results(LocalRunner(), kept)
    assert [one.path for one in files] == [
        "0/model.keras",
        "0/out.csv",
        "12/a/b",
        "output-0.log",
        "output-12.log",
    ]
    assert files[1].remote_path.endswith("run/0/project/out.csv")
    assert "output" not in in_words(kept, files)
