"""Test that the Python API gives the commands' results, prints nothing, and imports no large package."""

import inspect
import io
import json
import re
import subprocess
import sys
import typing
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from tests.unit.cli.test_launch import Cluster
from tests.unit.heard import Heard
from tests.unit.image.mpi_sif import write_mpi_sif
from tests.unit.image.signed import PUBLIC_KEY
from tests.unit.launch.examples import RECORD
from tests.unit.launch.recorded import DONE, FAILED, RUNNING, Recorded
from tests.unit.report.trainings import job_folder
from tests.unit.tables import every_row
from toolkit import app
from toolkit.cli.main import cli
from toolkit.errors import BadInput, CheckFailed, Missing, ToolkitError
from toolkit.launch.tracking import follow, records
from toolkit.model.jobfile import JobFields, JobFile, LaunchOptions
from toolkit.run.local import LocalRunner

FACTS = Path(__file__).parents[1] / "evidence" / "virtual-cluster-login.txt"
HEAVY = (
    "click",
    "docker",
    "fabric",
    "jinja2",
    "matplotlib",
    "paramiko",
    "requests",
    "rich",
    "spython",
    "yaml",
)
FUNCTIONS = [getattr(app, name) for name in app.__all__ if inspect.isfunction(getattr(app, name))]
KILLED = "slurmstepd: error: Detected 1 oom_kill event in StepId=12.0."


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "WORK", "TOOLKIT_CACHE_DIR"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.chdir(tmp_path)
    for name in ("_FIRST_QUERY", "_OUTPUT_SECONDS", "_SETTLE_SECONDS"):
        monkeypatch.setattr(follow, name, 0.01)
    write_mpi_sif(tmp_path / "my.sif")
    return tmp_path


@pytest.fixture
def silent(capfd: pytest.CaptureFixture[str]):
    yield
    assert capfd.readouterr() == ("", "")


@pytest.fixture
def cluster(place: Path, monkeypatch: pytest.MonkeyPatch) -> list[tuple]:
    """Make this machine a fake cluster; return the arguments of each connection."""
    asked: list[tuple] = []
    (place / "bin").mkdir()
    (place / "bin" / "sbatch").write_text("#!/bin/sh\necho 7\n")
    (place / "bin" / "sbatch").chmod(0o755)
    monkeypatch.setenv("PATH", f"{place / 'bin'}:/usr/bin:/bin")
    monkeypatch.setattr("toolkit.job.places.open_runner", lambda *where: asked.append(where) or Cluster())
    return asked


def of_slurm(monkeypatch: pytest.MonkeyPatch, *answers: str) -> None:
    monkeypatch.setattr("toolkit.job.places.open_runner", lambda *_: Recorded(scontrol=list(answers)))


def command(*words: str) -> str:
    return CliRunner().invoke(cli, words, obj={}).stdout


def plain(value: object) -> object:
    return json.loads(msgspec.json.encode(value))


def saved(key: str = "mnist-1", **changes: object) -> app.JobRecord:
    record = msgspec.structs.replace(RECORD, key=key, **{"host": "login", "state": "running", **changes})
    records.save(record)
    return record


# The module


def test_the_import_is_light():
    code = f"import sys, toolkit.app; print(sorted(set({HEAVY}) & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_every_function_is_typed_and_says_what_it_returns_and_raises():
    local = {
        "Result": object,
        "Report": object,
        "HostOptions": object,
        "SweepResult": object,
        "BinaryIO": typing.BinaryIO,
    }
    for function in FUNCTIONS:
        hints = typing.get_type_hints(function, localns=local)
        assert set(hints) == {*inspect.signature(function).parameters, "return"}, function.__name__
        text = inspect.getdoc(function)
        assert text, function.__name__
        assert "Raises:" in text or function in {app.script, app.jobs, app.failure}, function.__name__


def test_a_launch_takes_every_field_of_a_job_file():
    own = {"trainer", "arguments", "command"}
    fields = typing.get_type_hints(JobFields)
    assert set(fields) == set(JobFile.__struct_fields__) - own
    assert {"host", "cluster", "job", "from_job", "local", "fix", "force"} < set(
        LaunchOptions.__annotations__
    )
    for name, kind in typing.get_type_hints(JobFile).items():
        lists = {"modules", "sbatch", "binds", "sweep"}
        if name not in own | lists | {"image", "env_image", "data", "env", "env_file"}:
            assert kind == fields[name] | None, name


# Images, facts and verdicts


def test_facts_of_an_image_are_those_of_the_command(silent: None):
    facts = app.inspect(Path("my.sif"))
    assert facts.mpi is not None
    assert facts.mpi.version == "4.1.4"
    assert json.loads(command("image", "inspect", "my.sif", "--json")) == plain(facts)


def test_a_probe_asks_this_machine_or_another(cluster: list, silent: None):
    facts = app.probe(host="login", ssh_config=Path("config"), partition="gpus", nodes=0)
    assert facts.slurm is not None
    assert cluster == [("login", None, Path("config"))]
    assert isinstance(app.probe(), app.HostFacts)


def judged(*words: str) -> list[tuple[str, str]]:
    said = json.loads(command("doctor", "my.sif", "--facts", str(FACTS), *words, "--json"))
    return [(one["mode"], one["outcome"]) for one in said["predictions"]]


def outcomes(verdict: app.Verdict) -> list[tuple[str, str]]:
    return [(one.mode, one.outcome) for one in verdict.predictions]


def test_a_verdict_is_that_of_the_command(silent: None):
    verdict = app.doctor("my.sif", FACTS, nodes=2, mode="srun-pmix")
    assert verdict.chosen == "srun-pmix"
    assert outcomes(verdict) == judged("--nodes", "2", "--mode", "srun-pmix")
    assert app.doctor(app.inspect("my.sif"), app.load_facts(FACTS), nodes=2, mode="srun-pmix") == verdict
    assert outcomes(app.doctor("my.sif", FACTS, nodes=4)) == judged("--nodes", "4")


def test_a_verdict_counts_the_site_and_the_job_file(place: Path, silent: None):
    (place / "job.yaml").write_text("command: [true]\nnodes: 4\n")
    large = app.doctor("my.sif", FACTS, site="virtual", job="job.yaml")
    assert outcomes(large) == judged("--site", "virtual", "--job", "job.yaml")
    assert large.chosen is None
    assert app.doctor("my.sif", FACTS, site="virtual", job="job.yaml", nodes=2).chosen == "srun-pmix"


def test_a_verdict_probes_the_place_that_is_named(cluster: list):
    assert app.doctor("my.sif", host="login", partition="gpus").chosen == "srun-pmix"
    assert cluster == [("login", None, None)]


@every_row(
    ("call", "said"),
    [
        (
            lambda: app.doctor("my.sif", FACTS, host="login"),
            "this argument contains the facts of the host, so it cannot be combined with host",
        ),
        (
            lambda: app.doctor("my.sif", FACTS, partition="x"),
            "this argument contains the facts of the host, so it cannot be combined with host",
        ),
        (lambda: app.doctor("my.sif", FACTS, nodes=0), "--nodes 0: expected at least 1"),
        (lambda: app.doctor("my.sif", FACTS, nodes="2"), "--nodes write a whole number"),
        (lambda: app.doctor("my.sif", FACTS, mode="srun"), "--mode "),
        (lambda: app.doctor("none.sif", FACTS), "none.sif"),
        (lambda: app.doctor("my.sif", "my.sif"), "my.sif"),
        (lambda: app.load_facts("none.json"), "none.json"),
        (lambda: app.probe(wait=0), "--wait 0: not between 1 and 600 seconds"),
        (lambda: app.probe(nodes="a b"), "--nodes"),
        (lambda: app.probe(host="a", cluster="b"), "--host and --cluster"),
        (app.explain, "give exactly one of the arguments source and text"),
        (lambda: app.explain("x", text="y"), "give exactly one of the arguments source and text"),
        (lambda: app.explain("none.out"), "none.out"),
        (lambda: app.script(["true"], image="my.sif", nods=2), "did you mean nodes?"),
        (lambda: app.script(["true"], image="none.sif", host="x"), "--image none.sif: no such file"),
        (lambda: app.script("nope", image="my.sif"), "trainer 'nope': not found"),
        (lambda: app.script(image="my.sif"), "the command is missing"),
        (lambda: app.script("mnist", command=["true"]), "cannot be combined with a trainer"),
        (lambda: app.launch(from_job="x", fix="fix.toml"), "cannot be combined with --fix"),
        (
            lambda: app.launch(["true"], local=True, host="x", image="my.sif"),
            "cannot be combined with --host",
        ),
        (lambda: app.job("none"), "no job was launched from this machine yet"),
        (lambda: app.report("none"), "none"),
        (lambda: app.report_studies("none"), "none"),
    ],
)
def test_what_is_wrong_is_said_by_an_error(call, said):
    with pytest.raises(BadInput) as raised:
        call()
    assert said in raised.value.message


# Launches


def launched(**changes: object) -> app.JobRecord:
    return app.launch(["true"], **{"image": "my.sif", "host": "login", "nodes": 2, **changes})


def test_a_script_is_that_of_the_command(cluster: list, silent: None):
    words = (
        "--image",
        "my.sif",
        "--host",
        "login",
        "--nodes",
        "2",
        "--env",
        "A=1",
        "--dry-run",
        "--",
        "true",
    )
    made = app.script(["true"], image=Path("my.sif"), host="login", nodes=2, env={"A": "1"})
    keys = r"true-\d{8}-\d{6}-[0-9a-f]{6}"
    assert re.sub(keys, "KEY", made) == re.sub(keys, "KEY", command("launch", "--dry-run", *words))


def test_a_launch_is_submitted_recorded_and_kept(cluster: list, place: Path, silent: None):
    heard = Heard()
    record = launched(tell=heard, time="30", account="abc")
    assert (record.id, record.state, record.mode, record.host) == ("7", "pending", "srun-pmix", "login")
    assert record.spec.account == "abc"
    assert record.image_check is not None
    assert app.jobs() == (record,)
    assert app.job() == app.job(record.key[:10]) == app.job(record) == record
    assert any("Submitting" in step for step in heard.steps)
    assert (place / "toolkit" / "runs" / record.key / "job.sh").is_file()


def test_settings_of_the_folder_hold_and_are_announced(cluster: list, place: Path, silent: None):
    (place / "toolkit.toml").write_text('[launch]\naccount = "abc"\ntime = "10"\n')

    class Noted(Heard):
        def notice(self, text: str) -> None:
            self.details.append(text)

    noted = Noted()
    assert "#SBATCH --account=abc" in app.script(["true"], image="my.sif", host="login", tell=noted, time="5")
    assert noted.details == ["toolkit.toml: account"]


def test_a_command_wins_over_a_trainer_in_settings(cluster: list, place: Path):
    (place / "toolkit.toml").write_text('[launch]\ntrainer = "mnist"\n')
    assert launched().spec.command == ("true",)


def test_a_job_file_is_joined_with_the_arguments(cluster: list, place: Path):
    (place / "job.yaml").write_text("command: [sleep, '1']\nimage: my.sif\nnodes: 4\n")
    record = app.launch(job="job.yaml", host="login", nodes=2)
    assert (record.spec.command, record.spec.nodes) == (("sleep", "1"), 2)


def test_an_unsigned_image_is_refused_where_a_key_is_demanded(cluster: list, place: Path):
    (place / "key.asc").write_text(PUBLIC_KEY)
    with pytest.raises(CheckFailed, match="has no signature"):
        launched(verify_key=place / "key.asc")
    assert app.jobs() == ()
    assert launched(no_verify=True).image_check.signature == "not-checked"


def test_a_predicted_failure_is_refused_until_it_is_forced(cluster: list):
    with pytest.raises(CheckFailed, match="init-failure"):
        launched(mode="srun-pmi2")
    assert launched(mode="srun-pmi2", force=True).forced


def test_a_launch_that_is_followed_returns_the_last_record(cluster: list, place: Path, silent: None):
    for name, line in (("scontrol", "echo JobId=7 JobState=FAILED ExitCode=3:0"), ("squeue", "true")):
        (place / "bin" / name).write_text(f"#!/bin/sh\n{line}\n")
        (place / "bin" / name).chmod(0o755)
    record = launched(follow=True)
    assert record.state == "failed"
    reason = app.failure(record)
    assert isinstance(reason, CheckFailed)
    assert "ended as failed, exit code 3" in reason.message


# Jobs


def test_a_job_is_asked_about_followed_and_waited_for(monkeypatch: pytest.MonkeyPatch, silent: None):
    record = saved()
    of_slurm(monkeypatch, RUNNING)
    assert app.refresh("mnist-1").state == "running"
    assert app.failure(app.job(record)) is None
    of_slurm(monkeypatch, RUNNING, DONE)
    assert app.follow(record).state == "completed"
    assert app.follow(record) == app.job(record)
    saved("mnist-2", id="13")
    of_slurm(monkeypatch, FAILED)
    assert [one.state for one in app.wait("mnist-2")] == ["failed"]


def test_jobs_that_have_ended_are_neither_cancelled_nor_asked_about(silent: None):
    done = saved(state="completed")
    assert app.cancel(done) == done
    assert app.wait(done) == (done,)


def test_the_output_of_a_job_is_text(silent: None):
    saved(state="completed")
    LocalRunner().write(str(records.folder("mnist-1") / records.OUTPUT), b"one\ntwo\n", 0o600)
    assert "".join(app.logs("mnist-1")) == "one\ntwo\n"


def test_a_place_that_is_not_reached_is_an_error(monkeypatch: pytest.MonkeyPatch):
    def away(*_: object) -> None:
        raise Missing("login: cannot be reached")

    monkeypatch.setattr("toolkit.job.places.open_runner", away)
    saved()
    for call in (app.refresh, app.follow, app.cancel, app.resume):
        with pytest.raises(Missing):
            call()


def test_a_damaged_record_is_skipped_with_a_notice(place: Path, silent: None):
    saved()
    (place / "toolkit" / "jobs" / "bad").mkdir()
    (place / "toolkit" / "jobs" / "bad" / "record.json").write_text("{")
    told = []

    class Noted(Heard):
        def notice(self, text: str) -> None:
            told.append(text)

    assert [one.key for one in app.jobs(tell=Noted())] == ["mnist-1"]
    assert len(told) == 1


# Output and results


def test_an_explanation_is_that_of_the_command(place: Path, silent: None):
    (place / "job.out").write_text(KILLED)
    found = app.explain("job.out")
    assert found == app.explain(text=KILLED) == app.explain(io.BytesIO(KILLED.encode()))
    assert json.loads(command("explain", "job.out", "--json")) == plain(found)
    unknown = app.explain(text="some error\n")
    assert unknown.root is not None
    assert (unknown.findings, unknown.root.number, unknown.retry) == ((), 1, "user")
    assert app.explain(text="epoch 1: accuracy 0.97\n").root is None


def test_a_result_is_that_of_the_command(place: Path, silent: None):
    job_folder(place / "run")
    result = app.report(place / "run")
    assert result.test_accuracy == 0.98
    assert json.loads(command("report", "run", "--json")) == plain(result)


def test_errors_are_those_of_toolkit():
    assert app.errors.ToolkitError is ToolkitError
