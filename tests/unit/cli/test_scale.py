"""Test the errors of ``toolkit scale``, how it resumes, and what it does with failed runs."""

import msgspec
import pytest
from click.testing import CliRunner

from tests.unit.launch.examples import RECORD
from tests.unit.report.trainings import COMPLETE
from tests.unit.study.studies import TIMELINE, point, study
from tests.unit.tables import every_row
from toolkit.cli import scale
from toolkit.errors import BadInput, CheckFailed, Interrupted, Lost, Missing, ToolkitError
from toolkit.job import scale_point, study_run
from toolkit.launch.tracking import records
from toolkit.model.study import Figures
from toolkit.run import patience
from toolkit.run.command import Completed
from toolkit.study import folder


@pytest.fixture(autouse=True)
def _own_home(tmp_path, monkeypatch):
    for variable in ("HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "TOOLKIT_CACHE_DIR"):
        monkeypatch.setenv(variable, str(tmp_path))
    monkeypatch.chdir(tmp_path)


class Cluster:
    """A fake cluster. ``ends`` has the states in which jobs end, by the job's number. Other jobs complete."""

    def __init__(self, monkeypatch):
        self.jobs, self.ends, self.most = [], {}, 0
        self.digest = RECORD.image_digest
        monkeypatch.setattr(scale_point, "check", lambda _made, _flags: None)
        monkeypatch.setattr(scale_point, "prepare", self.prepared)
        monkeypatch.setattr(scale_point, "submit_job", self.submitted)
        monkeypatch.setattr(study_run, "wait_for", self.wait_for)
        monkeypatch.setattr(scale, "open_runner", lambda *_where: self)
        self.timeline = TIMELINE.read_bytes()

    place = "cluster demo"

    def close(self):
        pass

    def run(self, command):
        return Completed(command, 0 if self.timeline else 1, self.timeline, b"head: cannot open")

    def prepared(self, _runner, made, *_more, **_named):
        self.jobs.append(made.job)
        key = f"mnist-{len(self.jobs)}"
        record = msgspec.structs.replace(
            RECORD, key=key, id=str(len(self.jobs)), state="pending", image_digest=self.digest
        )
        return type("Prepared", (), {"record": record})

    def submitted(self, job, *_more):
        end = self.ends.get(len(self.jobs), "completed")
        if end == "refused":
            raise CheckFailed("sbatch refused the job")
        records.save(job.record)
        if end == "killed":
            raise KeyboardInterrupt
        return job.record

    def wait_for(self, found, _tell, *, first):
        assert first
        self.most = max(self.most, len(found))
        record = found[0]
        end = self.ends.get(int(record.id), "completed")
        if end == "ctrl-c":
            raise Interrupted("stopped waiting")
        ended = msgspec.structs.replace(record, state="completed" if end == "completed" else end, exit_code=0)
        records.save(ended)
        records.keep(ended, records.METRICS, COMPLETE)
        records.keep(ended, records.OUTPUT, b"0: img/sec: 100\n0: img/sec: 250\n")
        return [ended]


@pytest.fixture
def cluster(monkeypatch):
    return Cluster(monkeypatch)


def run(*words):
    return CliRunner().invoke(scale.command, words, obj={"verbose": False, "quiet": True})


def scaled(*words):
    done = run(*words)
    assert done.exception is None, done.exception
    return done.stdout


def points(tmp_path, name="mnist"):
    where = tmp_path / "studies" / name
    return folder.load_points(where, folder.load(where))


@every_row(
    ("words", "said"),
    [
        (["mnist", "--ranks", "1,x"], "expected numbers separated by commas"),
        (["mnist", "--ranks", "0"], "expected numbers separated by commas"),
        (["mnist", "--ranks", "1,99999999999"], "at most 10000000"),
        (["mnist", "--ranks", "9" * 5000], "at most 10000000"),
        (["mnist", "--ranks", "5000000"], "--nodes 5000000: expected at most 65536"),
        (["mnist"], "--ranks"),
        (["nope", "--ranks", "1"], "trainer 'nope': not found"),
        (["--ranks", "1"], "the program is missing"),
        (["mnist", "--ranks", "1", "--compare", "mode"], "expected FIELD=A,B"),
        (["mnist", "--ranks", "1", "--compare", "stratgy=a"], "strategy"),
        (["mnist", "--ranks", "1", "--compare", "mode=nope"], "nope"),
        (["mnist", "--ranks", "3", "--nodes", "2"], "cannot be divided evenly"),
        (["--ranks", "1", "--pattern", "(", "--", "true"], "--pattern"),
        (["mnist", "--ranks", "1", "--time", "x;y"], "--time"),
        (["mnist", "--ranks", "1", "--prove", str(TIMELINE)], "one rank has no allreduce operations"),
        (["mnist", "--ranks", "2", "--prove", str(TIMELINE), "--compare", "mode=gloo"], "cannot be combined"),
        (["mnist", "--ranks", "2", "--prove", "none.json"], "none.json: No such file"),
        (["job.yaml", "--ranks", "1"], "job.yaml: toolkit scale does not accept a job file"),
        (["--ranks", "1", "--compare", "trainer=mnist,job.yml"], "toolkit scale does not accept a job file"),
        (
            ["mnist", "--ranks", "2", "--nodes", "1", "--compare", "nodes=1,2"],
            "toolkit scale sets this option itself",
        ),
        (
            ["mnist", "--ranks", "2", "--compare", "ranks-per-node=1,2"],
            "toolkit scale sets this option itself",
        ),
        (["mnist", "--ranks", "2", "--compare", "exclusive=yes,no"], "--exclusive write true or false"),
        (
            ["mnist", "--ranks", "2", "--compare", "A_B=a-b,a_b"],
            "A_B: the files of a-b and a_b would have the same names",
        ),
        (["mnist", "--ranks", "2", "--profile", "--workdir", "/work"], "--workdir: --profile conflicts"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_there(tmp_path, words, said):
    done = run(*words)
    told = done.output if done.exit_code == 2 else str(done.exception)
    assert done.exit_code == 2 or isinstance(done.exception, BadInput)
    assert said in told
    assert not (tmp_path / "studies").exists()


def test_a_dry_run_shows_the_runs_and_changes_nothing(tmp_path):
    text = scaled("mnist", "--ranks", "1,2", "--repeat", "2", "--profile", "--dry-run")
    assert "2 ranks on 2 nodes, timeline" in text
    assert "mnist --epochs 6" in text
    assert "5 runs, weak scaling" in text
    assert not (tmp_path / "studies").exists()


def test_a_study_says_once_why_its_runs_go_to_another_partition():
    words = ("mnist", "--ranks", "1,2", "--site", "juwels", "--dry-run")
    done = run(*words, "--gpus-per-node", "4")
    assert done.exit_code == 0, done.exception
    assert done.stderr.count("partition gpus: the default partition batch has no GPUs") == 1
    error = run(*words, "--gpus-per-node", "8").exception
    assert isinstance(error, BadInput)
    assert "no partition of site juwels can run this" in error.message


def test_several_trainers_are_one_study(tmp_path):
    text = scaled("--ranks", "1,2", "--nodes", "1", "--compare", "trainer=mnist-cnn,cifar10", "--dry-run")
    assert "mnist-cnn, 2 ranks on 1 node, run 1" in text
    assert "cifar10 --epochs 3" in text
    assert "studies/mnist-cnn-cifar10" in text


def test_every_point_is_a_job_of_its_own_and_its_figures_are_kept(tmp_path, cluster, monkeypatch):
    monkeypatch.setattr(scale_point, "connect_with_retries", lambda *_: _entered(cluster))
    text = scaled("mnist", "--ranks", "1,2", "--repeat", "2", "--profile", "--compare", "mode=srun-pmix,gloo")
    assert "10 of 10 runs are measured" in text
    assert [(job.nodes, job.mode) for job in cluster.jobs[:2]] == [(1, "srun-pmix"), (1, "gloo")]
    found = points(tmp_path)
    assert {p.state for p in found} == {"measured"}
    assert found[0].figures.seconds == (1.0,)
    assert found[0].origin.launcher == "srun --mpi=pmix"
    assert found[-1].shares.steps > 30
    kept = tmp_path / "studies" / "mnist" / "timelines" / "gloo-r2-n2.json"
    assert kept.read_bytes() == cluster.timeline
    # In the second call, all runs are done.
    scaled("mnist", "--ranks", "1,2", "--repeat", "2", "--profile", "--compare", "mode=srun-pmix,gloo")
    assert len(cluster.jobs) == 10


def test_the_folder_of_a_study_has_no_value_of_a_secret(tmp_path, cluster):
    scaled("mnist", "--ranks", "1", "--repeat", "1", "--env", "WANDB_API_KEY=c4n4ry", "--env", "A=1")
    assert [job.env["WANDB_API_KEY"] == "c4n4ry" for job in cluster.jobs] == [True]
    files = [file for file in (tmp_path / "studies").rglob("*") if file.is_file()]
    assert files
    assert not any(b"c4n4ry" in file.read_bytes() for file in files)


def test_one_command_runs_a_suggestion_beside_none_and_autotune_and_says_whether_it_held(tmp_path, cluster):
    text = scaled("mnist", "--ranks", "2", "--repeat", "1", "--prove", str(TIMELINE))
    found = [dict(job.env or {}) for job in cluster.jobs]
    assert found[0] == {}
    assert set(found[1]) == {"HOROVOD_FUSION_THRESHOLD", "HOROVOD_CYCLE_TIME"}
    assert found[2] == {"HOROVOD_AUTOTUNE": "1"}
    assert "Suggested: HOROVOD_FUSION_THRESHOLD=2097152 HOROVOD_CYCLE_TIME=" in text
    assert "the suggested settings make no measurable difference" in text
    found = points(tmp_path, "mnist-proof")
    assert {one.series for one in found} == {"default", "suggested", "autotune"}


def test_a_proof_has_a_folder_beside_the_study_that_its_timeline_is_of(tmp_path, cluster, monkeypatch):
    monkeypatch.setattr(scale_point, "connect_with_retries", lambda *_: _entered(cluster))
    scaled("mnist", "--ranks", "2", "--repeat", "1", "--profile")
    timeline = tmp_path / "studies" / "mnist" / "timelines" / "r2-n2.json"
    scaled("mnist", "--ranks", "2", "--repeat", "1", "--prove", str(timeline))
    assert len(points(tmp_path)) == 2
    assert len(points(tmp_path, "mnist-proof")) == 3


def test_a_timeline_that_suggests_nothing_proves_nothing(tmp_path):
    (tmp_path / "short.json").write_text("[\n")
    with pytest.raises(CheckFailed, match="too few allreduce operations, so toolkit cannot suggest settings"):
        raise run("mnist", "--ranks", "2", "--prove", "short.json").exception


def _entered(runner):
    import contextlib

    return contextlib.nullcontext(runner)


def test_a_study_grows_and_runs_what_is_new_alone(tmp_path, cluster):
    scaled("mnist", "--ranks", "1", "--repeat", "1")
    scaled("mnist", "--ranks", "2", "--repeat", "2")
    assert [(p.ranks, p.number) for p in points(tmp_path)] == [(1, 1), (2, 1), (1, 2), (2, 2)]
    assert len(cluster.jobs) == 4


def test_an_image_that_was_built_anew_is_not_mixed_into_a_study(tmp_path, cluster):
    scaled("mnist", "--ranks", "1", "--repeat", "1")
    cluster.digest = "sha256:" + "ef" * 32
    error = run("mnist", "--ranks", "2", "--repeat", "1").exception
    assert isinstance(error, BadInput)
    assert "sha256:efefefefefef now" in error.message
    assert "--study" in error.fix
    assert [point.state for point in points(tmp_path)] == ["measured", "planned"]
    scaled("mnist", "--ranks", "2", "--repeat", "1", "--study", "anew")


def test_another_study_is_not_mixed_into_one_that_is_there(cluster):
    scaled("mnist", "--ranks", "1", "--repeat", "1")
    error = run("mnist", "--ranks", "1", "--repeat", "1", "--batch", "8").exception
    assert isinstance(error, BadInput)
    assert "differs from this study in batch" in error.message
    assert "--study" in error.fix


def test_a_study_goes_on_with_another_time_limit_and_account(tmp_path, cluster):
    cluster.ends = {1: "timeout", 2: "timeout"}
    assert isinstance(run("mnist", "--ranks", "1", "--repeat", "1", "--time", "10").exception, CheckFailed)
    cluster.ends = {}
    scaled("mnist", "--ranks", "1", "--repeat", "1", "--time", "60", "--account", "b", "--retry", "2")
    assert [(job.time, job.account) for job in cluster.jobs[1:]] == [("10", None), ("60", "b")]
    assert folder.load(tmp_path / "studies" / "mnist").said["time"] == "60"


def test_values_that_do_not_fit_beside_those_of_the_study_are_refused(tmp_path, cluster):
    scaled("mnist", "--ranks", "1", "--repeat", "1", "--compare", "A=+1")
    error = run("mnist", "--ranks", "1", "--repeat", "1", "--compare", "A=-1").exception
    assert isinstance(error, BadInput)
    assert "+1 and -1 would have the same names" in error.message
    assert len(cluster.jobs) == 1


def test_the_same_files_are_meant_from_any_folder(tmp_path, cluster, monkeypatch):
    (tmp_path / "net.py").write_text("from toolkit.trainers.command import run\nrun(None)\n")
    (tmp_path / "my.sif").touch()
    (tmp_path / "parts").mkdir()
    where = str(tmp_path / "kept")
    words = ("--ranks", "1", "--repeat", "1", "--study", where)
    scaled("net.py", *words, "--image", "my.sif", "--data", "parts")
    there = tmp_path / "elsewhere"
    there.mkdir()
    monkeypatch.chdir(there)
    scaled("../net.py", *words, "--image", "../my.sif", "--data", "../parts", "--nodes", "1")
    (job,) = cluster.jobs
    found = (job.trainer, job.image, job.data)
    assert found == tuple(str(tmp_path.resolve() / name) for name in ("net.py", "my.sif", "parts"))


def test_names_and_what_is_not_here_stay_as_they_are_typed(tmp_path, cluster):
    (tmp_path / "mnist").touch()
    scaled("mnist", "--ranks", "1", "--repeat", "1", "--image", "cluster:my", "--data", "cluster:few")
    (job,) = cluster.jobs
    assert (job.trainer, job.image, job.data) == ("mnist", "cluster:my", "cluster:few")


def test_a_study_from_before_full_paths_were_kept_goes_on(tmp_path, cluster):
    (tmp_path / "parts").mkdir()
    words = ("mnist", "--ranks", "1", "--repeat", "1", "--data", "parts")
    scaled(*words)
    where = tmp_path / "studies" / "mnist"
    made = folder.load(where)
    folder.save(where, msgspec.structs.replace(made, said={**made.said, "data": "parts"}))
    scaled(*words)
    assert len(cluster.jobs) == 1


def test_settings_do_not_make_several_jobs_of_a_run(tmp_path, cluster, monkeypatch):
    (tmp_path / "toolkit.toml").write_text('[launch]\narray = "0-3"\nrequeue = true\nchain = 2\n')
    monkeypatch.setenv("TOOLKIT_ELASTIC", "true")
    monkeypatch.setenv("TOOLKIT_MIN_NODES", "1")
    scaled("mnist", "--ranks", "2", "--repeat", "1")
    (job,) = cluster.jobs
    assert not any((job.array, job.requeue, job.chain, job.elastic, job.min_nodes))


@pytest.mark.parametrize(
    ("settings", "words", "said"),
    [
        ('arguments = ["--optimizer", "sgd"]', ["mnist", "--ranks", "1"], "toolkit.toml:2: toolkit scale"),
        ('trainer = "mnist"', ["--ranks", "1", "--pattern", "(x)", "--", "true"], "mnist conflicts with"),
        ('workdir = "/a"', ["mnist", "--ranks", "2", "--profile"], "toolkit.toml:2: --profile conflicts"),
    ],
)
def test_settings_that_a_study_would_overrule_are_named(tmp_path, settings, words, said):
    (tmp_path / "toolkit.toml").write_text(f"[launch]\n{settings}\n")
    error = run(*words).exception
    assert isinstance(error, BadInput)
    assert said in error.message
    assert error.fix


def test_arguments_of_settings_give_way_to_those_of_the_command_line(tmp_path, cluster):
    (tmp_path / "toolkit.toml").write_text('[launch]\narguments = ["--optimizer", "sgd"]\n')
    scaled("mnist", "--ranks", "1", "--repeat", "1", "--", "--seed", "1")
    assert cluster.jobs[0].arguments == ("--seed", "1", "--epochs", "3")


@every_row(("rate", "told"), [(0.4249, "0.425"), (42.0, "42"), (99.97, "100"), (1234567.0, "1,234,567")])
def test_slow_and_fast_runs_are_told_with_the_digits_that_count(rate, told):
    steps = []
    tell = type("Tell", (), {"step": staticmethod(steps.append)})
    figures = Figures(seconds=(1.0,), rates=(rate,))
    made, one = study([(1, 1)]), point(1, 1.0)
    study_run._tell_result(made, msgspec.structs.replace(one, figures=figures), 1, tell)
    assert steps == [f"1 rank on 1 node, run 1: {told} images/s"]


def test_a_run_that_fails_is_run_again_after_the_others(tmp_path, cluster):
    cluster.ends = {1: "failed"}
    scaled("mnist", "--ranks", "1,2", "--repeat", "1")
    assert [job.nodes for job in cluster.jobs] == [1, 2, 1]
    assert [(p.state, p.tries) for p in points(tmp_path)] == [("measured", 2), ("measured", 1)]


def test_what_fails_again_is_left_out_said_so_and_tried_when_asked_for(tmp_path, cluster):
    cluster.ends = {1: "timeout", 3: "refused"}
    error = run("mnist", "--ranks", "1,2", "--repeat", "1").exception
    assert isinstance(error, CheckFailed)
    assert error.message == "1 runs failed; their performance figures are missing"
    assert error.detail == ("1 rank on 1 node, run 1: sbatch refused the job",)
    assert "--retry 2" in error.fix
    # All runs failed too often, and toolkit reports this again.
    assert isinstance(run("mnist", "--ranks", "1,2", "--repeat", "1").exception, CheckFailed)
    assert len(cluster.jobs) == 3
    scaled("mnist", "--ranks", "1,2", "--repeat", "1", "--retry", "2")
    assert [p.state for p in points(tmp_path)] == ["measured", "measured"]


def test_jobs_of_an_interrupted_study_are_waited_for_and_not_submitted_twice(tmp_path, cluster):
    cluster.ends = {2: "ctrl-c"}
    error = run("mnist", "--ranks", "1,2", "--repeat", "1").exception
    assert isinstance(error, Interrupted)
    assert "run the same command to resume" in error.fix
    assert [p.state for p in points(tmp_path)] == ["measured", "submitted"]
    cluster.ends = {}
    scaled("mnist", "--ranks", "1,2", "--repeat", "1")
    assert len(cluster.jobs) == 2
    assert [p.state for p in points(tmp_path)] == ["measured", "measured"]


def test_a_study_that_was_killed_while_it_submitted_finds_the_job(tmp_path, cluster):
    cluster.ends = {1: "killed"}
    assert isinstance(run("mnist", "--ranks", "1", "--repeat", "1").exception, Interrupted)
    cluster.ends = {}
    scaled("mnist", "--ranks", "1", "--repeat", "1")
    assert len(cluster.jobs) == 1
    # The record of the other run is lost, so toolkit submits the run again, and does not count a failed try.
    scaled("mnist", "--ranks", "1", "--repeat", "1")
    (point,) = points(tmp_path)
    lost = msgspec.structs.replace(point, state="submitted", job="gone", figures=None)
    folder.save_point(tmp_path / "studies" / "mnist", lost)
    scaled("mnist", "--ranks", "1", "--repeat", "1", "--retry", "0")
    assert [(p.state, p.tries) for p in points(tmp_path)] == [("measured", 1)]


def test_what_is_missing_ends_the_call_before_a_study_is_written(tmp_path, cluster, monkeypatch):
    def missing(*_):
        raise Missing("there is no image")

    monkeypatch.setattr(scale_point, "check", missing)
    assert isinstance(run("mnist", "--ranks", "1", "--repeat", "1").exception, Missing)
    assert not (tmp_path / "studies" / "mnist").exists()


def test_a_study_that_has_begun_waits_for_a_place_that_is_away(tmp_path, cluster, monkeypatch):
    monkeypatch.setattr(patience, "_FIRST_PAUSE", 0.01)
    away = [Lost("login port 22: cannot be reached over SSH: Connection refused")] * 2

    def opened(*_where):
        if cluster.jobs and away:
            raise away.pop()
        return cluster

    monkeypatch.setattr(scale, "open_runner", opened)
    scaled("mnist", "--ranks", "1,2", "--repeat", "1")
    assert (len(cluster.jobs), away) == (2, [])


def test_a_place_that_was_never_reached_is_not_waited_for(cluster, monkeypatch):
    opened = []

    def refused(*where):
        opened.append(where)
        raise Lost("logn port 22: cannot be reached over SSH: Name or service not known")

    monkeypatch.setattr(scale, "open_runner", refused)
    assert isinstance(run("mnist", "--ranks", "1", "--repeat", "1").exception, Lost)
    assert len(opened) == 1


def test_several_jobs_may_be_in_the_queue(cluster):
    scaled("mnist", "--ranks", "1,2", "--repeat", "3", "--at-once", "4")
    assert cluster.most == 4


def test_figures_of_any_command_are_found_in_its_output(tmp_path, cluster):
    scaled("--ranks", "1,2", "--repeat", "1", "--pattern", "img/sec: ([0-9]+)", "--", "bench", "{ranks}")
    assert [job.command for job in cluster.jobs] == [("bench", "1"), ("bench", "2")]
    assert [p.figures.rates for p in points(tmp_path, "bench")] == [(250.0,), (250.0,)]


def test_a_run_without_the_timeline_that_was_asked_for_is_left_out(cluster, monkeypatch):
    cluster.timeline = b""
    monkeypatch.setattr(scale_point, "connect_with_retries", lambda *_: _entered(cluster))
    error = run("mnist", "--ranks", "2", "--repeat", "1", "--profile").exception
    assert isinstance(error, ToolkitError)
    assert "reading the timeline" in error.detail[0]
