"""Test the sources of a job's settings (files, variables, options, records), and scripts for other sites."""

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from tests.unit.cli.test_launch import Cluster
from tests.unit.image.sifs import DATA, sif
from tests.unit.launch.examples import RECORD, SRUN
from tests.unit.tables import every_row
from toolkit.cli import launch
from toolkit.errors import BadInput, CheckFailed, Missing, ToolkitError
from toolkit.job import repeat
from toolkit.job import submit as launching
from toolkit.job.places import HostOptions
from toolkit.job.request import gate
from toolkit.job.request.layering import merge_request
from toolkit.launch.tracking import records
from toolkit.model.facts import HostFacts, ImageFacts, SlurmFacts
from toolkit.model.job import ImageCheck

TINY = sif((DATA / "tiny.gzip").read_bytes())
SITE = """\
schema = "toolkit.site/1"
title = "My cluster"
directory = "$WORK/toolkit"
network = "ib0"

[defaults]
partition = "gpus"
account = "train"

[[partitions]]
name = "gpus"
max_time = "24:00:00"
max_nodes = 8
cores = 40
gpus = 4
"""


@pytest.fixture(autouse=True)
def _own_home(tmp_path, monkeypatch):
    for variable in ("HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "TOOLKIT_CACHE_DIR"):
        monkeypatch.setenv(variable, str(tmp_path))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(shutil, "which", lambda _: None)
    (tmp_path / "toolkit" / "sites").mkdir(parents=True)
    (tmp_path / "toolkit" / "sites" / "mine.toml").write_text(SITE)


def run(*words):
    return CliRunner().invoke(launch.command, words, obj={"verbose": False, "quiet": False})


def script(*words):
    done = run("--dry-run", *words)
    assert done.exception is None, done.exception
    return done.stdout


def refused(*words):
    error = run(*words).exception
    assert isinstance(error, ToolkitError), error
    return error


def header(text):
    return [line.removeprefix("#SBATCH ") for line in text.splitlines() if line.startswith("#SBATCH ")]


def test_a_job_file_is_launched_by_its_name_or_by_an_option(tmp_path):
    (tmp_path / "job.yaml").write_text("trainer: mnist\nsite: mine\nnodes: 2\narguments: [--epochs, 1]\n")
    by_name, by_option = script("job.yaml"), script("--job", "job.yaml")
    assert header(by_name) == header(by_option)
    assert "--nodes=2" in header(by_name)
    assert "--partition=gpus" in header(by_name)
    assert "--epochs 1" in by_name
    assert "--nodes=3" in header(script("job.yaml", "--nodes", "3"))
    assert "--epochs 1" not in script("job.yaml", "--", "--epochs", "2")


def test_data_of_ones_own_are_in_the_script_for_a_site_far_away(tmp_path):
    (tmp_path / "parts").mkdir()
    (tmp_path / "net.py").write_text("from toolkit.trainers.command import run\nrun(None)\n")
    text = script("net.py", "--site", "mine", "--data", "parts")
    assert 'net.py --data "${WORK:?}"/toolkit/data/parts' in text
    assert '--bind "${WORK:?}"/toolkit/data/parts:"${WORK:?}"/toolkit/data/parts:ro' in text
    assert "--data" not in script("net.py", "--site", "mine")


def test_a_command_may_stand_in_a_file(tmp_path):
    (tmp_path / "job.yml").write_text("site: mine\nimage: x.sif\ncommand: [python, 'a b.py']\n")
    assert "python 'a b.py'" in script("job.yml")


@every_row(
    ("words", "said"),
    [
        (["nope.yaml"], "--job nope.yaml: No such file"),
        (["--job", "."], "--job .: a folder"),
        (["a.yaml", "--job", "b.yaml"], "give only one job file"),
        (["mnist", "--site", "nowhere"], "site 'nowhere': not found"),
        (
            ["mnist", "--site", "mine", "--nodes", "9", "--dry-run"],
            "--nodes 9: partition gpus has a limit of 8 nodes",
        ),
        (["mnist", "--site", "mine", "--partition", "x", "--dry-run"], "choices: gpus"),
        (["mnist", "--memory", "lots"], "--memory 'lots': write a whole number"),
        (["mnist", "--sbatch=--nodes=3"], "use the job field nodes instead"),
        (["mnist", "--local", "--cluster", "demo"], "--local: cannot be combined"),
        (["mnist", "--local", "--explain"], "cannot be combined with --explain"),
        (["mnist", "--local", "--no-follow"], "--local: cannot be combined with --no-follow"),
        (["--from-job", "x", "--local"], "--from-job: cannot be combined with --local"),
        (["mnist", "--dry-run", "--json"], "--json and --dry-run: cannot be combined"),
        (["--from-job", "x", "--dry-run", "--json"], "--dry-run makes no job record"),
        (["--from-job", "x", "--local", "--explain"], "cannot be combined with --local and --explain"),
    ],
)
def test_what_cannot_be_ends_in_2_with_one_line(words, said):
    error = refused(*words)
    assert error.code == 2
    assert said in error.message
    assert "\n" not in error.message


def test_settings_variables_and_options_follow_each_other(tmp_path, monkeypatch):
    (tmp_path / "toolkit" / "config.toml").write_text('[launch]\naccount = "mine"\nqos = "low"\nnodes = 3\n')
    (tmp_path / "toolkit.toml").write_text('# of this project\n[launch]\nqos = "high"\n')
    monkeypatch.setenv("TOOLKIT_NODES", "4")
    text = script("mnist", "--site", "mine", "--time", "30", "--explain")
    explained = {line.split()[1]: line for line in text.splitlines() if " <- " in line}
    assert explained["account"] == f"# account = mine <- {tmp_path}/toolkit/config.toml:2"
    assert explained["qos"] == "# qos = high <- toolkit.toml:3"
    assert explained["nodes"] == "# nodes = 4 <- TOOLKIT_NODES"
    assert explained["time"] == "# time = 30 <- --time"
    assert explained["partition"] == "# partition = gpus <- site mine"
    assert explained["image"] == "# image = tf2.21-cpu <- default"
    assert explained["cpus_per_rank"] == "# cpus_per_rank = 40 <- 40 cores of a node in gpus"
    assert explained["trainer"] == "# trainer = mnist <- TRAINER"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "[lunch]\n",
            "toolkit.toml:1: lunch: unknown table (did you mean launch?); choices: [launch]",
        ),
        ("[launch]\nnode = 1\n", "toolkit.toml:2: node: unknown field (did you mean nodes?)"),
        ('[launch]\n\nnodes = "2"\n', "toolkit.toml:3: nodes: write a whole number"),
        ("[launch\n", "toolkit.toml:1: this is not TOML"),
    ],
)
def test_settings_are_read_strictly(tmp_path, text, said):
    (tmp_path / "toolkit.toml").write_text(text)
    assert refused("mnist").message.startswith(said)


def test_a_site_far_away_needs_neither_image_nor_data_and_says_so():
    done = run("mnist", "--site", "mine", "--nodes", "2", "--dry-run")
    assert done.exit_code == 0
    assert "not predicted" in done.stdout
    assert '"${WORK:?}"/toolkit/images/tf2.21-cpu.sif' in done.stdout
    assert "not built yet; build it: `toolkit image build tf2.21-cpu" in done.stderr
    assert "not on this machine yet; download it: toolkit data get mnist" in done.stderr
    assert "Copy the image to $WORK/toolkit/images/tf2.21-cpu.sif" in done.stderr


def test_copies_for_a_site_far_away_have_a_folder_each():
    words = ("--site", "mine", "--nodes", "2", "--", "hostname")
    assert "TOOLKIT_COPY" not in script(*words)
    assert 'cd -- "$TOOLKIT_JOB_DIR/copy-$TOOLKIT_COPY"' in script("--copies", *words)


def test_an_image_for_another_machine_is_said():
    assert (
        "is for ppc64le; My cluster has x86_64"
        in run("mnist", "--site", "mine", "--image", "tf2.15-ppc64le", "--dry-run").stderr
    )


def test_a_site_without_slurm_at_hand_and_without_host_is_missing_one(tmp_path):
    (tmp_path / "x.sif").write_bytes(TINY)
    error = refused("--site", "mine", "--image", "x.sif", "--", "true")
    assert isinstance(error, Missing)
    assert "names no host" in error.message


def test_the_host_of_a_site_is_gone_to(tmp_path, monkeypatch):
    (tmp_path / "toolkit" / "sites" / "far.toml").write_text(
        SITE.replace("network", 'host = "login.far"\nnetwork')
    )
    made = merge_request({"site": "far", "image": "x"}, ("true",))
    where = launching.place_of(HostOptions(None, None, None), made)
    assert where.host == "login.far"
    given = HostOptions("other", None, None)
    assert launching.place_of(given, made) == given
    monkeypatch.setattr(shutil, "which", lambda _: "/usr/bin/sbatch")
    assert launching.place_of(HostOptions(None, None, None), made).host is None


def test_a_dry_run_for_a_site_loads_nothing_heavy(tmp_path):
    heavy = {
        "docker",
        "fabric",
        "paramiko",
        "matplotlib",
        "rich",
        "spython",
        "requests",
        "yaml",
        "zstandard",
        "toolkit.image.inspect",
        "toolkit.engine.predict",
        "toolkit.run.remote.ssh",
    }
    code = f"""
import sys
from toolkit.cli.main import main
try:
    main(["launch", "mnist", "--image", "none.sif", "--site", "mine", "--dry-run"])
except SystemExit as end:
    print("ended", end.code)
print(sorted({heavy} & set(sys.modules)))
"""
    env = {"HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, cwd=tmp_path)
    assert done.stdout.splitlines()[-2:] == ["ended 0", "[]"], done.stderr


class Place:
    place = "login"
    beside = b""

    def read(self, target, offset=0, limit=None):
        return self.beside if target.endswith(".sif.facts.json") else b""

    def close(self):
        pass


@pytest.fixture
def record(monkeypatch):
    command = (
        "python",
        "-m",
        "toolkit.trainers.mnist",
        "--data",
        "/d",
        "--output",
        RECORD.spec.directory,
        "--strategy",
        "horovod",
        "--epochs",
        "3",
    )
    spec = msgspec.structs.replace(RECORD.spec, command=command, trainer="mnist", site="mine", env={"A": "1"})
    kept = msgspec.structs.replace(RECORD, spec=spec, host="login", forced=True)
    records.save(kept)
    monkeypatch.setattr("toolkit.job.places.open_runner", lambda *_: Place())
    monkeypatch.setattr(gate, "check_image", lambda *_: None)
    monkeypatch.setattr(repeat, "probe", lambda *_: HostFacts(place="login"))
    return kept


def kept_with(record, strategy=None, **changes):
    words = tuple(strategy if strategy and word == "horovod" else word for word in record.spec.command)
    spec = msgspec.structs.replace(record.spec, command=words, **changes)
    records.save(msgspec.structs.replace(record, spec=spec))


def test_a_record_is_launched_once_more_in_a_folder_of_its_own(record):
    text = script("--from-job", record.key)
    assert f"as in {record.key}; toolkit predicted 'ok'" in text
    assert record.spec.image in text
    assert f"{record.spec.directory}\n" not in text
    assert "--epochs 3" in text
    assert "--mpi=pmix" in text
    assert SRUN.launcher[1] in text


def test_options_win_over_a_record(record):
    text = script(
        "--from-job", record.key, "--nodes", "1", "--env", "B=2", "--time", "30", "--", "--epochs", "1"
    )
    assert "--strategy single --epochs 1" in text.replace(" \\\n        ", " ")
    assert {"--nodes=1", "--time=30"} <= set(header(text))
    assert "export A=1\n" in text
    assert "export B=2\n" in text


def test_a_record_without_its_secret_values_asks_the_caller_for_them(record, monkeypatch):
    kept_with(record, secrets=("MY_TOKEN",))
    monkeypatch.delenv("MY_TOKEN", raising=False)
    error = refused("--from-job", record.key, "--dry-run")
    assert isinstance(error, BadInput)
    assert "MY_TOKEN: not set; a job record does not contain the values of secret variables" in error.message
    monkeypatch.setenv("MY_TOKEN", "c4n4ry")
    text = script("--from-job", record.key)
    assert "which sets MY_TOKEN" in text
    assert "c4n4ry" not in text


@every_row(
    ("kept", "words", "repeated"),
    [
        ("multiworker", [], "multiworker"),
        ("multiworker", ["--nodes", "4"], "multiworker"),
        ("multiworker", ["--strategy", "hybrid"], "hybrid"),
        ("horovod", ["--nodes", "4"], "horovod"),
        ("horovod", ["--nodes", "1"], "single"),
    ],
)
def test_the_strategy_of_a_record_stays_unless_it_was_the_usual_one(record, kept, words, repeated):
    kept_with(record, kept)
    text = script("--from-job", record.key, *words).replace("\\\n", " ")
    assert f"--strategy {repeated} --epochs 3" in " ".join(text.split())


def test_another_ssh_configuration_leads_to_the_host_of_the_record(record, monkeypatch, tmp_path):
    config, opened = tmp_path / "config", []
    config.write_text("")
    monkeypatch.setattr("toolkit.job.places.open_runner", lambda *where: opened.append(where) or Place())
    script("--from-job", record.key, "--ssh-config", str(config))
    assert opened == [("login", None, config)]


def test_what_the_place_has_counts_for_a_record_too(record, monkeypatch):
    slurm = SlurmFacts(settings={"TaskPlugin": "task/affinity"})
    host = HostFacts(place="login", tmpdir="/scratch", interfaces=("eth0", "ib0"), slurm=slurm)
    monkeypatch.setattr(repeat, "probe", lambda *_: host)
    kept_with(record, site="", cpus_per_rank=4, gpus_per_node=1)
    text = script("--from-job", record.key)
    for words in ("TMPDIR=/tmp", "NCCL_SOCKET_IFNAME=ib0", "OMP_NUM_THREADS=4"):
        assert words in text
    assert "KMP_AFFINITY" not in text


def test_a_node_of_the_first_partition_of_a_record_is_asked(record, monkeypatch):
    questions = []

    def probed(_, asked):
        questions.append(asked.partition)
        return HostFacts(place="login")

    monkeypatch.setattr(repeat, "probe", probed)
    kept_with(record, site="", partition="gpu,long")
    script("--from-job", record.key)
    script("--from-job", record.key, "--partition", "long")
    assert questions == ["gpu", "long"]


def test_what_is_written_beside_the_image_of_a_record_counts(record, monkeypatch):
    facts = ImageFacts(path="it.sif", format="sif", digest="sha256:00", libraries=("libiomp5.so",))
    monkeypatch.setattr(Place, "beside", msgspec.json.encode(facts))
    kept_with(record, cpus_per_rank=4)
    assert "KMP_AFFINITY=" in script("--from-job", record.key)
    other = msgspec.structs.replace(facts, digest="sha256:01")
    monkeypatch.setattr(Place, "beside", msgspec.json.encode(other))
    assert "KMP_AFFINITY" not in script("--from-job", record.key)


def test_the_image_here_that_was_copied_there_counts(record, tmp_path, monkeypatch):
    facts = ImageFacts(path="it.sif", format="sif", libraries=("libiomp5.so",))
    monkeypatch.setattr(gate, "inspect", lambda *_, **__: facts)
    monkeypatch.setattr(gate, "before_launch", lambda *_: ImageCheck(signature="none"))
    digest = hashlib.sha256(TINY).hexdigest()
    kept = msgspec.structs.replace(record, image_digest=f"sha256:{digest}")
    kept_with(kept, cpus_per_rank=4, image=f"/work/images/mine-{digest[:12]}.sif")
    (tmp_path / "mine.sif").write_bytes(TINY)
    assert "KMP_AFFINITY=" in script("--from-job", record.key)
    (tmp_path / "mine.sif").write_bytes(TINY + b"newer")
    assert "KMP_AFFINITY" not in script("--from-job", record.key)


def test_the_image_of_a_record_of_this_machine_is_read(record, tmp_path, monkeypatch):
    read = []
    image = tmp_path / "mine.sif"
    image.write_bytes(b"an image")

    def inspected(image, **_given):
        read.append(image)
        return ImageFacts(path=str(image), format="sif", libraries=("libiomp5.so",))

    monkeypatch.setattr(gate, "inspect", inspected)
    monkeypatch.setattr(gate, "before_launch", lambda *_: ImageCheck(signature="none"))
    kept_with(msgspec.structs.replace(record, host=None), cpus_per_rank=4, image=str(image))
    assert "KMP_AFFINITY=" in script("--from-job", record.key)
    assert read == [image]


def test_each_task_of_an_array_from_a_record_writes_a_file_of_its_own(record):
    def output(*words):
        found = (line for line in header(script("--from-job", record.key, *words)) if "--output" in line)
        return next(found)

    assert output() == "--output=output.log"
    assert output("--array", "0-3") == "--output=output-%a.log"
    assert output("--array", "0-3", "--output", "all.log") == "--output=all.log"
    kept_with(record, output="mine.log")
    assert output("--array", "0-3") == "--output=mine.log"


def test_another_image_or_mode_is_another_job(record):
    for words in (["--image", "x"], ["--mode", "gloo"], ["mnist"]):
        assert isinstance(refused("--from-job", record.key, *words), BadInput)


def test_a_changed_image_is_told(record, monkeypatch):
    def changed(*_given):
        raise CheckFailed("login: the image is not what it was")

    monkeypatch.setattr(gate, "check_image", changed)
    assert refused("--from-job", record.key, "--dry-run").code == 1


def test_the_limits_of_its_site_hold_for_a_record_too(record):
    assert "a limit of 8 nodes" in refused("--from-job", record.key, "--nodes", "9", "--dry-run").message


GPUS = ("--image", "x.sif", "--site", "juwels", "--gpus-per-node", "4")


@every_row("quiet", [False, True])
def test_a_job_for_gpus_goes_to_a_partition_that_has_them(quiet):
    words = [*GPUS, "--nodes", "2", "--dry-run", "--explain", "--", "./a.out"]
    context = {"verbose": False, "quiet": quiet}
    done = CliRunner().invoke(launch.command, words, obj=context)
    why = "the default partition batch has no GPUs"
    assert {"--partition=gpus", "--gres=gpu:4", "--cpus-per-task=40"} <= set(header(done.stdout))
    assert done.stderr.splitlines()[0] == f"partition gpus: {why}"
    assert f"\n# partition gpus: {why}\n" in done.stdout
    assert f"\n# partition = gpus <- {why}\n" in done.stdout


def test_a_job_at_a_host_says_in_its_script_why_it_goes_to_another_partition(monkeypatch):
    monkeypatch.setattr("toolkit.job.places.open_runner", lambda *_: Cluster())
    Path("x.sif").write_bytes(TINY)
    text = script(
        *GPUS, "--host", "login", "--force", "--mode", "srun-none", "--directory", "/w", "--", "true"
    )
    assert "--partition=gpus" in header(text)
    assert "\n# partition gpus: the default partition batch has no GPUs\n" in text


def test_a_partition_without_gpus_is_refused_with_those_that_have_them():
    error = refused(*GPUS, "--partition", "devel", "--dry-run", "--", "./a.out")
    assert error.message == "--gpus-per-node 4: partition devel has no GPUs (site juwels)"
    assert (error.fix, error.code) == ("give `--partition` gpus or develgpus", 2)


def test_the_example_of_the_help_works():
    assert "#!/bin/bash" in script("mnist", "--site", "juwels")


@pytest.fixture
def here(tmp_path, monkeypatch):
    """Make this machine appear to have a container runtime, and write an image."""
    image = tmp_path / "tiny.sif"
    image.write_bytes(sif((DATA / "tiny.gzip").read_bytes()))
    monkeypatch.setattr("toolkit.job.places.open_runner", lambda *_: Cluster())
    return str(image)


def test_a_script_for_this_machine_knows_nothing_of_slurm(here, tmp_path):
    text = script("--local", "--image", here, "--directory", str(tmp_path), "--", "/bin/echo", "a b")
    assert "bash job.sh" in text
    assert "#SBATCH" not in text
    assert "srun --" not in text
    assert "echo 'a b'" in text
    assert f"TOOLKIT_JOB_DIR={tmp_path}/runs/echo-" in text
    assert not (tmp_path / "runs").exists()


@every_row(
    ("words", "said"),
    [
        (["--nodes", "2"], "--nodes 2: --local uses one node"),
        (["--mode", "srun-pmix"], "--mode srun-pmix: needs Slurm"),
        (["--array", "0-3"], "--array: not possible with --local"),
        (["--time", "1:00", "--module", "GCC"], "--time, --module: not possible with --local"),
        (["--site", "mine"], "--local: cannot be combined with --host, --cluster or --site"),
    ],
)
def test_what_needs_a_cluster_is_refused_here(here, words, said):
    error = refused("--local", "--image", here, *words, "--dry-run", "--", "/bin/true")
    assert error.code == 2
    assert said in error.message


def test_what_a_job_file_says_of_the_queue_is_refused_here_with_its_line(here, tmp_path):
    (tmp_path / "job.yaml").write_text(f"image: {here}\ncommand: ['true']\npartition: gpus\n")
    for words in (["job.yaml"], ["--job", "job.yaml"]):
        error = refused(*words, "--local", "--dry-run")
        assert error.message == "partition (job.yaml:3): not possible with --local, which uses no Slurm queue"


def test_what_settings_say_of_the_queue_is_left_out_here(here, tmp_path):
    (tmp_path / "toolkit.toml").write_text(
        '[launch]\naccount = "train"\ncpus_per_rank = 3\nsite = "juwels"\n'
    )
    done = run("--local", "--image", here, "--workdir", "/w", "--dry-run", "--", "/bin/true")
    assert done.exception is None, done.exception
    assert "OMP_NUM_THREADS=3" in done.stdout
    assert "--pwd /w" in done.stdout
    assert "Ignored, because --local uses no Slurm queue: account (toolkit.toml:2)" in done.stderr


def test_a_script_is_checked_here_as_for_a_cluster(here, tmp_path):
    (tmp_path / "t.py").write_text("import math\nprint(math.pi)\n")
    error = refused("--local", "--image", here, str(tmp_path / "t.py"))
    assert error.message == "tiny.sif has no command `python`"


def test_a_job_file_in_another_encoding_is_told_with_its_line_and_not_as_toml(tmp_path):
    file = tmp_path / "job.yaml"
    file.write_bytes("nodes: 2\nname: é\n".encode("latin-1"))
    with pytest.raises(BadInput) as caught:
        merge_request({}, (), str(file))
    assert caught.value.message == f"{file}:2: the byte at offset 15 is not UTF-8"
    file.write_bytes(b"\xef\xbb\xbfnodes: 2\n")
    assert merge_request({}, (), str(file)).job.nodes == 2
