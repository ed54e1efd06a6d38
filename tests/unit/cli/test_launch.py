"""Test the errors of ``toolkit launch`` before it contacts a host, and its use of facts and options."""

import re
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from tests.unit.image.sifs import DATA, sif
from tests.unit.tables import every_row
from toolkit.cli import launch
from toolkit.cli.frame.faults import of_call
from toolkit.errors import BadInput, CheckFailed, Lost, Missing, ToolkitError
from toolkit.job import prepare, staging
from toolkit.job.request import layering
from toolkit.job.request.flags import Flags
from toolkit.job.request.locations import find_image
from toolkit.job.sources import check
from toolkit.launch.request.checks import as_name
from toolkit.launch.request.trainers import shipped_trainers
from toolkit.run import patience
from toolkit.run.command import Completed
from toolkit.run.local import LocalRunner

EVIDENCE = Path(__file__).parents[2] / "evidence"


@pytest.fixture(autouse=True)
def _nowhere(tmp_path, monkeypatch):
    for variable in ("HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "TOOLKIT_CACHE_DIR"):
        monkeypatch.setenv(variable, str(tmp_path))
    monkeypatch.chdir(tmp_path)

    def opened(*_given):
        raise AssertionError("a place was opened")

    monkeypatch.setattr("toolkit.job.places.open_runner", opened)


@pytest.fixture
def image(tmp_path):
    file = tmp_path / "tiny.sif"
    file.write_bytes(sif((DATA / "tiny.gzip").read_bytes()))
    return file


def run(*words):
    return CliRunner().invoke(launch.command, words, obj={"verbose": False, "quiet": False})


@every_row(
    ("words", "said"),
    [
        (["nope"], "trainer 'nope': not found"),
        (["mnsit"], "trainer 'mnsit': not found (did you mean mnist?); choices: mnist, "),
        ([], "the command is missing"),
        (["--"], "the command is missing"),
        (["--nodes", "0", "--", "true"], "--nodes"),
        (["--ranks-per-node", "0", "--", "true"], "--ranks-per-node"),
        (["--cpus-per-rank", "-1", "--", "true"], "--cpus-per-rank"),
        (["--nodes", "two", "--", "true"], "--nodes"),
        (["--time", "x;y", "--", "true"], "--time"),
        (["--name", "a b", "--", "true"], "--name"),
        (["--partition", "a\nb", "--", "true"], "--partition"),
        (["--account", "", "--", "true"], "--account"),
        (["--env", "NOT_SET_HERE", "--", "true"], "--env NOT_SET_HERE: the variable is not set"),
        (["--env", "=x", "--", "true"], "--env: a variable without a name"),
        (["--env-file", "nope.env", "--", "true"], "--env-file nope.env: No such file"),
        (["--env", "A B=1", "--", "true"], "not a valid variable name"),
        (["--directory", "~other/x", "--", "true"], "--directory"),
        (["--directory", "/a,b", "--", "true"], "option --bind cannot contain"),
        (["--image", "/nope.sif", "--", "true"], "--image /nope.sif: no such file"),
        (["--image", "nope.sif", "--", "true"], "--image nope.sif: no such file"),
        (["--image", "./", "--", "true"], "a folder"),
    ],
)
def test_a_wrong_option_ends_in_2_before_any_place_is_opened(words, said):
    done = run("--host", "login.example", *words)
    code = done.exception.code if isinstance(done.exception, ToolkitError) else done.exit_code
    assert code == 2, done.exception
    assert said in done.output + str(done.exception)


@every_row(
    ("words", "said", "hint"),
    [
        (["net.ipynb"], "net.ipynb: this is a notebook, not a program", "nbconvert --to script net.ipynb"),
        (["run.sh"], "run.sh: neither a Python file", "`toolkit launch -- bash run.sh`"),
        (["program"], "program: neither a Python file", "`toolkit launch -- ./program`"),
        (["pkg"], "pkg: this is a folder", "`toolkit launch -- python -m pkg`"),
        (["data"], "data: this is a folder", "`toolkit launch data/FILE.py`"),
    ],
)
def test_a_program_that_is_no_python_file_is_told_how_to_start_it(tmp_path, monkeypatch, words, said, hint):
    monkeypatch.chdir(tmp_path)
    for name in ("net.ipynb", "run.sh", "program", "pkg/__init__.py", "data/x"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    error = run(*words).exception
    assert isinstance(error, BadInput)
    assert error.message.startswith(said)
    assert hint in error.fix


@every_row(
    ("words", "hint"),
    [
        (["train.py", "--epochs", "5"], "an option of your program goes after `--`, as in: `-- --epochs …`"),
        (["python", "train.py"], "a command goes after `--`, as in: "),
        (["--nods", "2", "--", "x"], "launch --help"),
    ],
)
def test_words_of_the_program_before_the_dashes_are_told_where_they_belong(words, hint):
    done = CliRunner().invoke(
        launch.command, words, obj={"verbose": False, "quiet": False}, standalone_mode=False
    )
    assert isinstance(done.exception, click.ClickException)
    assert hint in of_call(done.exception).fix


def test_a_recipe_without_image_ends_in_3_and_in_the_commands_that_make_it():
    error = run("--image", "mpi-only", "--", "true").exception
    assert isinstance(error, Missing)
    assert error.fix == (
        "make the image: `toolkit image build mpi-only && "
        "toolkit image sif mpi-only -o build/images/mpi-only.sif`"
    )


def test_a_mistyped_recipe_is_told_with_the_one_that_is_close():
    error = run("--image", "mpi-onl", "--", "true").exception
    assert isinstance(error, Missing)
    assert error.message.endswith(" (did you mean mpi-only?)")
    assert error.fix == "give a SIF file, or a name that `toolkit image list` shows"


def test_a_recipes_image_is_found_where_it_is_made(tmp_path, image):
    (tmp_path / "build" / "images").mkdir(parents=True)
    made = image.rename(tmp_path / "build" / "images" / "mine.sif")
    assert find_image("mine") == made


def test_data_that_was_not_fetched_ends_in_3_and_in_the_command_that_fetches_it(image):
    error = run("--image", str(image), "mnist").exception
    assert isinstance(error, Missing)
    assert error.fix == "download the data set: `toolkit data get mnist`"


class Cluster(LocalRunner):
    """A host that answers the probe like the virtual cluster, and has this machine's login shell."""

    place = "cluster demo"

    def __init__(self, runtime="/usr/bin/apptainer"):
        answer = (EVIDENCE / "virtual-cluster-login.txt").read_bytes()
        self._answer = re.sub(rb"\|path \S*/(apptainer|singularity)\n", f"|path {runtime}\n".encode(), answer)
        if not runtime:
            self._answer = re.sub(rb"@ runtime\n(\|.*\n)*@rc 0\n", b"@ runtime\n@rc 127\n", answer)
        self.asked = []

    def run(self, command):
        if command.words[:2] == ("sh", "-s") and b"toolkit-state:" not in (command.stdin or b""):
            self.asked.append(command.words[2:])
            return Completed(command, 0, self._answer, b"")
        return super().run(command)


class Told:
    def __init__(self):
        self.steps = []

    def step(self, text):
        self.steps.append(text)

    def detail(self, text):
        pass

    def output(self, text):
        print(text)

    def notice(self, text):
        print(text)


def prepared(image, words=("true",), runner=None, tell=None, **changes):
    flags = {name: changes.pop(name) for name in ("fix", "verify_key", "no_verify") if name in changes}
    submits = changes.pop("submits", True)
    said = {"image": str(image), "mode": "srun-pmi2", "directory": "/big", "time": "10", **changes}
    given = layering.merge_request({k: v for k, v in said.items() if v is not None}, words)
    flags = Flags(force=True, **flags)
    sources = check(given, flags)
    place, tell = runner or Cluster(), tell or Told()
    return prepare.prepare(place, given, flags, sources, tell, remote=True, for_submission=submits)


def test_a_connection_that_breaks_while_a_place_is_asked_is_made_anew(image, monkeypatch):
    monkeypatch.setattr(patience, "_FIRST_PAUSE", 0.01)

    class Breaking(Cluster):
        left = 2

        def run(self, command):
            if self.left:
                self.left -= 1
                raise Lost("the SSH connection was lost while a command ran")
            return super().run(command)

    tell, place = Told(), Breaking()
    assert prepared(image, runner=place, tell=tell).script
    assert place.left == 0
    assert "the SSH connection was lost while a command ran; trying again" in tell.steps


def test_an_image_is_compared_with_the_copy_on_the_host_before_a_job_is_submitted(image, tmp_path):
    big = str(tmp_path / "big")
    (parcel,) = prepared(image, directory=big).parcels
    there = Path(parcel.target)
    assert there.parent == tmp_path / "big" / "images"
    there.parent.mkdir(parents=True)
    there.write_bytes(image.read_bytes())
    assert prepared(image, directory=big).parcels == ()
    assert prepared(image, directory=big).record.spec.image == str(there)
    there.write_bytes(image.read_bytes()[:-1])
    assert prepared(image, directory=big).parcels == (parcel,)


def test_facts_of_an_earlier_launch_refuse_no_job(image, monkeypatch):
    monkeypatch.setenv("TOOLKIT_FACTS_SECONDS", "600")

    class Host(Cluster):
        count = 0

        def run(self, command):
            done = super().run(command)
            if command.words[:2] != ("sh", "-s") or b"toolkit-state:" in command.stdin:
                return done
            self.count += 1
            nodes = "".join(f"0: {line}\n" for line in ("@node node1", *done.text.splitlines()))
            answer = f"{done.text}\ntoolkit-nodes/1\n{nodes}@srun 0\n@nodesend\n"
            return Completed(command, 0, answer.encode(), b"")

    place, tell = Host(""), Told()
    prepared(image, runner=place, modules=("tools/apptainer",))  # the module may provide the runtime
    prepared(image, runner=place, tell=tell, modules=("tools/apptainer",))
    assert place.count == 1
    assert any("is unchanged since the probe" in step for step in tell.steps)
    with pytest.raises(CheckFailed, match="Neither Apptainer nor Singularity"):
        prepared(image, runner=place)
    assert place.count == 2
    place._answer = Cluster()._answer  # now Apptainer is on the nodes
    assert prepared(image, runner=place).script
    assert place.count == 3


def test_a_script_that_is_only_shown_reads_no_image_on_the_host(image):
    class Counting(Cluster):
        def run(self, command):
            assert command.words[0] != "sha256sum"
            return super().run(command)

    (parcel,) = prepared(image, runner=Counting(), submits=False).parcels
    assert parcel.source == image


def test_a_name_nobody_gave_is_made_fit():
    assert as_name("a b") == "a-b"


@every_row(("word", "name"), [("./a b", "a-b"), ("/", "job"), ("/opt/train.py", "train.py")])
def test_the_command_names_the_job_whatever_it_is(image, word, name):
    job = prepared(image, (word,))
    assert job.record.spec.name == name
    assert f"#SBATCH --job-name={name}\n" in job.script


@every_row("runtime", ["apptainer", "singularity"])
def test_the_script_calls_the_runtime_by_the_name_that_the_place_has(image, runtime):
    script = prepared(image, runner=Cluster(f"/opt/bin/{runtime}")).script
    assert f"command -v {runtime} " in script
    assert f"{runtime} exec" in script


def profile(tmp_path, container):
    (tmp_path / "toolkit" / "sites").mkdir(parents=True)
    text = f'schema = "toolkit.site/1"\ntitle = "Mine"\ndirectory = "/big"\n[container]\n{container}\n'
    (tmp_path / "toolkit" / "sites" / "mine.toml").write_text(text)


@pytest.mark.parametrize(
    ("container", "said"),
    [
        ('command = "apptainer"\nmodules = ["apptainer"]', "module load apptainer provides the runtime"),
        ('command = "/opt/ap/bin/apptainer"', "the site profile names the path of the runtime"),
    ],
)
def test_a_runtime_that_only_the_job_has_is_taken_to_be_there(image, tmp_path, container, said):
    profile(tmp_path, container)
    tell = Told()
    job = prepared(image, runner=Cluster(""), tell=tell, site="mine")
    command = container.split('"')[1]
    assert f"command -v {command} " in job.script
    assert ("\nmodule load apptainer ||" in job.script) == ("modules" in container)
    line = f"{command} is assumed to exist, because {said}; its version is unknown"
    assert f"cluster demo: {line}" in tell.steps
    assert f"# {line}\n" in job.script


def test_a_module_of_the_job_may_bring_the_runtime_too(image):
    script = prepared(image, runner=Cluster(""), modules=("tools/apptainer/1.3",)).script
    assert "module load tools/apptainer/1.3" in script
    assert "command -v apptainer " in script


def test_without_a_runtime_and_a_module_for_it_nothing_is_launched(image):
    with pytest.raises(CheckFailed, match="Neither Apptainer nor Singularity"):
        prepared(image, runner=Cluster(""), modules=("GCC",))


@every_row(("partition", "words"), [(None, ()), ("gpus", ("gpus",)), ("fast,slow", ("fast",))])
def test_a_node_of_the_jobs_partition_is_asked(image, partition, words):
    place = Cluster()
    prepared(image, runner=place, partition=partition)
    assert place.asked == [("1", "5", *words)]


def test_a_preflight_that_is_left_out_is_said(image):
    tell = Told()
    assert not prepared(image, tell=tell).record.spec.preflight
    assert any("preflight check is skipped" in step for step in tell.steps)
    tell = Told()
    prepared(image, tell=tell, preflight=False)
    assert not any("preflight" in step for step in tell.steps)


def test_records_of_one_second_are_told_apart(image):
    assert re.search(r"T\d\d:\d\d:\d\d\.\d{6}\+00:00$", prepared(image).record.submitted)


@pytest.mark.parametrize(
    ("given", "there"),
    [
        (None, "/big/toolkit"),
        ("x/y", "/big/x/y"),
        ("~/x", "HOME/x"),
        ("~", "HOME"),
        ("/abs", "/abs"),
    ],
)
def test_the_folder_there_is_found_whatever_the_profile_prints(image, tmp_path, given, there):
    (tmp_path / ".profile").write_text(
        "echo Welcome; printf '/no line break'\nWORK=/big\nexport WORK\necho toolkit\n"
    )
    directory = prepared(image, directory=given).record.spec.directory
    assert directory.startswith(there.replace("HOME", str(tmp_path)) + "/runs/")


def test_without_a_work_folder_the_home_is_taken(image, tmp_path, monkeypatch):
    monkeypatch.delenv("WORK", raising=False)
    assert prepared(image, directory=None).record.spec.directory.startswith(f"{tmp_path}/toolkit/runs/")


def test_a_place_that_tells_no_home_is_missing_one(image, monkeypatch):
    monkeypatch.delenv("WORK", raising=False)
    monkeypatch.setenv("HOME", "")
    with pytest.raises(Missing, match="HOME is not set"):
        prepared(image, directory=None)


def test_a_bad_directory_is_named():
    with pytest.raises(BadInput, match="~NAME is not supported"):
        check(layering.merge_request({"directory": "~ada"}, ("true",)), Flags())


FIX = """\
schema = "toolkit.fix/1"
image = "other.sif"
digest = "sha256:00"

[launch]
mode = "srun-pmi2"
container = ["--sharens"]
binds = ["/opt/tables:/opt/tables:ro"]
unset = ["UCX_TLS"]

[launch.env]
PMIX_MCA_gds = "hash"
"""


def test_a_fix_is_taken_over_and_shown(image, tmp_path):
    file = tmp_path / "fix.toml"
    file.write_text(FIX)
    tell = Told()
    job = prepared(image, mode=None, fix=str(file), tell=tell)
    assert job.record.mode == "srun-pmi2"
    words = " ".join(job.script.replace("\\\n", " ").split())
    assert "-u UCX_TLS" in words
    assert "exec --sharens" in words
    assert "--bind /opt/tables:/opt/tables:ro" in words
    assert words.endswith(" PMIX_MCA_gds=hash true")
    assert any("PMIX_MCA_gds=hash" in step and "--sharens" in step for step in tell.steps)
    assert any("was made for other.sif" in step for step in tell.steps)


def test_a_fix_and_another_mode_are_one_too_many(image, tmp_path):
    file = tmp_path / "fix.toml"
    file.write_text(FIX)
    with pytest.raises(BadInput, match="is for mode srun-pmi2"):
        prepared(image, mode="srun-pmix", fix=str(file))


def test_a_variable_that_is_given_wins_over_one_of_a_fix(image, tmp_path):
    file = tmp_path / "fix.toml"
    file.write_text(FIX)
    job = prepared(image, mode=None, fix=str(file), env={"PMIX_MCA_gds": "ds21"})
    assert "PMIX_MCA_gds=ds21" in job.script
    assert "PMIX_MCA_gds=hash" not in job.script


def test_a_trainer_of_ones_own_is_brought_there_under_its_digest(image, tmp_path):
    own = tmp_path / "my net.py"
    own.write_text("from toolkit.trainers.command import run\nrun(None)\n")
    job = prepared(image, ("--epochs", "1"), trainer=str(own), strategy="horovod")
    (program, *_) = job.parcels
    assert program.source == own
    assert program.target == f"/big/programs/{program.sha256[:12]}/my net.py"
    assert job.record.spec.name == "my-net"
    assert job.record.spec.command[:3] == ("python", program.target, "--output")
    assert f"/big/programs/{program.sha256[:12]}" in job.script


def test_a_trainer_of_ones_own_takes_data_where_they_are_named(image, tmp_path):
    own, data = tmp_path / "net.py", tmp_path / "numbers"
    own.write_text("from toolkit.trainers.command import run\nrun(None)\n")
    (data / "sub").mkdir(parents=True)
    for name in ("a.bin", "sub/b.bin", ".hidden"):
        (data / name).write_text("x")
    job = prepared(image, (), trainer=str(own), data=str(data))
    assert job.record.spec.command[2:4] == ("--data", "/big/data/numbers")
    targets = [parcel.target for parcel in job.parcels]
    assert targets[-2:] == ["/big/data/numbers/a.bin", "/big/data/numbers/sub/b.bin"]


def test_a_file_or_folder_that_is_not_there_ends_in_2(image, tmp_path):
    error = run("--image", str(image), "none.py").exception
    assert isinstance(error, BadInput)
    assert "none.py: No such file" in str(error)
    (tmp_path / "net.py").write_text("from toolkit.trainers.command import run\nrun(None)\n")
    error = run("--image", str(image), "--data", "/nowhere", "net.py").exception
    assert "--data /nowhere: the folder does not exist" in str(error)


def test_a_trainer_whose_data_nobody_fetches_asks_for_them(image):
    error = run("--image", str(image), "imagenet").exception
    assert isinstance(error, BadInput)
    assert "imagenet: the option --data is missing; give the folder with the training images" in str(error)


def test_more_files_than_anybody_would_copy_are_refused(image, tmp_path, monkeypatch):
    monkeypatch.setattr(staging, "_MOST_FILES", 2)
    (tmp_path / "net.py").write_text("from toolkit.trainers.command import run\nrun(None)\n")
    for name in ("a", "b", "c"):
        (tmp_path / "many").mkdir(exist_ok=True)
        (tmp_path / "many" / name).write_text("")
    with pytest.raises(BadInput, match="more than 2 files, toolkit's limit for a copy"):
        prepared(image, (), trainer=str(tmp_path / "net.py"), data=str(tmp_path / "many"))


def test_the_help_names_every_trainer():
    told = " ".join(run("--help").output.split())
    assert all(name in told for name in shipped_trainers())
