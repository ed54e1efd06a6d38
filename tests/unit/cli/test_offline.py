"""Test job scripts for a site that toolkit does not contact: toolkit applies or refuses each option."""

import shutil
from pathlib import Path

import pytest

from tests.unit.cli.test_launch_ways import SITE, refused, run
from tests.unit.image.sifs import DATA, sif
from tests.unit.image.signed import PUBLIC_KEY, gpg_home
from tests.unit.tables import every_row

FIX = """\
schema = "toolkit.fix/1"
image = "other.sif"
digest = "sha256:00"

[launch]
mode = "srun-pmi2"
container = ["--no-mount", "/etc/localtime"]
env = {UCX_TLS = "tcp"}
"""


@pytest.fixture(autouse=True)
def _far_away(tmp_path, monkeypatch):
    for variable in ("HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "TOOLKIT_CACHE_DIR"):
        monkeypatch.setenv(variable, str(tmp_path))
    monkeypatch.chdir(tmp_path)
    which = shutil.which
    monkeypatch.setattr(shutil, "which", lambda name: None if name == "sbatch" else which(name))
    (tmp_path / "toolkit" / "sites").mkdir(parents=True)
    (tmp_path / "toolkit" / "sites" / "mine.toml").write_text(SITE)
    (tmp_path / "fix.toml").write_text(FIX)
    (tmp_path / "key.asc").write_text(PUBLIC_KEY)
    (tmp_path / "box").mkdir()
    (tmp_path / "d.py").mkdir()
    (tmp_path / "net.py").write_text("from toolkit.trainers.command import run\nrun(None)\n")
    (tmp_path / "tiny.sif").write_bytes(sif((DATA / "tiny.gzip").read_bytes()))


def written(*words):
    done = run("--site", "mine", "--dry-run", *words)
    assert done.exception is None, done.exception
    return done.stdout, done.stderr


def test_a_command_that_the_image_does_not_have_is_refused(tmp_path):
    error = refused("--site", "mine", "--dry-run", "--image", "tiny.sif", "--", "nosuch")
    assert "has no command `nosuch`" in error.message
    text, _ = written("--image", "tiny.sif", "--force", "--", "nosuch")
    assert "nosuch" in text
    # train.py may exist only on the cluster, in the folder from which the user submits the job.
    assert "train.py" in written("--image", "none.sif", "--", "python3", "train.py")[0]


def test_the_mode_and_the_words_of_a_fix_are_in_the_script():
    text, told = written("mnist", "--image", "tiny.sif", "--fix", "fix.toml")
    for words in ("--mpi=pmi2", "--no-mount /etc/localtime", "UCX_TLS=tcp"):
        assert words in text
    assert "The fix file fix.toml sets: mode srun-pmi2, --no-mount, /etc/localtime, UCX_TLS=tcp" in told
    assert "made for other.sif; the job's image has different contents" in told


def test_the_script_says_that_its_mode_is_that_of_the_fix():
    assert "the fix file sets srun-pmi2" in written("mnist", "--fix", "fix.toml")[0]


@every_row(
    ("words", "said", "code"),
    [
        (["--fix", "nope.toml"], "nope.toml: No such file", 2),
        (["--fix", "fix.toml", "--mode", "gloo"], "--mode gloo: fix.toml is for mode srun-pmi2", 2),
        (["--verify-key", "nope.asc"], "--verify-key nope.asc: No such file", 2),
        (["--verify-key", "key.asc", "--no-verify"], "cannot be combined", 2),
        (["--verify-key", "key.asc"], "--verify-key: tf2.21-cpu is not on this machine, so its sign", 1),
        (["--verify-key", "key.asc", "--image", "/no/x.sif"], "--verify-key: /no/x.sif is not on this", 1),
        (["--data", "nowhere"], "the data set mnist is not in nowhere", 3),
        (["--json"], "--json and --dry-run: cannot be combined", 2),
        (["--image", "box"], "--image box: this is a folder; toolkit launch needs a SIF file", 2),
        (["--image", "./box"], "--image ./box: this is a folder; toolkit launch needs a SIF file", 2),
        (
            ["--image", "docker-daemon:x"],
            "--image docker-daemon:x: not a file; toolkit launch needs a SIF file",
            2,
        ),
        (
            ["--image", "docker://ubuntu"],
            "--image docker://ubuntu: not a file; toolkit launch needs a SIF file",
            2,
        ),
        (
            ["--image", "tf2.15-cp"],
            "neither a SIF file nor a recipe (did you mean tf2.15-cpu?); recipes: ",
            2,
        ),
    ],
)
def test_what_is_refused_with_a_cluster_at_hand_is_refused_here(words, said, code):
    error = refused("mnist", "--site", "mine", "--dry-run", *words)
    assert said in error.message
    assert error.code == code
    assert "\n" not in error.message


@every_row(
    ("words", "said"),
    [
        (["nosuch.py"], "nosuch.py: No such file"),
        (["d.py"], "d.py: this is a folder, not a program"),
        (["net.py", "--data", "nowhere"], "--data nowhere: the folder does not exist"),
        (["imagenet"], "imagenet: the option --data is missing; give the folder with the training images"),
    ],
)
def test_a_trainer_whose_files_are_not_here_is_refused(words, said):
    error = refused(*words, "--site", "mine", "--dry-run")
    assert said in error.message
    assert error.code == 2


def test_all_that_has_to_be_carried_is_told_with_its_place(tmp_path):
    (tmp_path / "parts").mkdir()
    text, told = written("net.py", "--data", "parts")
    assert "Copy the image to $WORK/toolkit/images/tf2.21-cpu.sif" in told
    assert f"Copy the program {tmp_path}/net.py to $WORK/toolkit/programs/net.py" in told
    assert f"Copy the data in {tmp_path}/parts to $WORK/toolkit/data/parts" in told
    assert 'python "${WORK:?}"/toolkit/programs/net.py --data' in text


def test_data_that_lie_elsewhere_are_named_by_their_folder(tmp_path):
    (tmp_path / "digits").mkdir()
    _, told = written("mnist", "--data", "digits")
    assert f"Copy the data in {tmp_path}/digits to $WORK/toolkit/data/mnist" in told
    assert "not on this machine yet: toolkit data" not in told


def test_a_command_of_ones_own_needs_neither_data_nor_program():
    _, told = written("--image", "x.sif", "--", "true")
    assert "The data" not in told
    assert "The program" not in told


def test_an_image_that_was_built_is_read_and_one_called_as_a_folder_is_not_it(tmp_path):
    (tmp_path / "tf2.21-cpu").mkdir()
    assert "not built yet" in written("mnist")[1]
    (tmp_path / "images").mkdir()
    shutil.copy("tiny.sif", "images/tf2.21-cpu.sif")
    assert "not built yet" not in written("mnist")[1]


def test_gpus_of_the_partition_that_nobody_asks_for_are_told():
    gpus = "tf2.14-cuda11.8 can use GPUs, but the job does not request GPUs; add --gpus-per-node 4"
    assert gpus in written("mnist", "--image", "tf2.14-cuda11.8")[1]
    assert "computes on GPUs" not in written("mnist", "--image", "tf2.14-cuda11.8", "--gpus-per-node", "4")[1]
    assert "computes on GPUs" not in written("mnist")[1]


def test_a_signature_that_is_asked_for_is_looked_at(tmp_path):
    with gpg_home() as keys:
        keys.make("builder@example.org")
        key = keys.public(tmp_path / "mine.asc", "builder@example.org")
    error = refused("mnist", "--site", "mine", "--dry-run", "--image", "tiny.sif", "--verify-key", str(key))
    assert error.code == 1
    assert "the SIF has no signature" in error.message
    assert "not checked, because of --no-verify" in written("mnist", "--image", "tiny.sif", "--no-verify")[1]


DDP = "import torch.distributed as dist\ndist.init_process_group('gloo')\n"


@every_row(
    ("words", "mode", "launcher"),
    [
        (["--image", "x.sif", "--", "python", "ddp.py"], "torch", "srun"),
        (["--image", "x.sif", "--", "torchrun", "other.py"], "torch", "srun"),
        (["--image", "x.sif", "--program", "jax", "--", "./run"], "jax", "srun"),
        (["--image", "jax-cpu", "--", "python", "unknown.py"], "jax", "srun"),
        (["--image", "x.sif", "--mode", "srun-pmi2", "--", "python", "ddp.py"], "srun-pmi2", "srun"),
        (["--image", "x.sif", "--", "python", "other.py"], "srun-pmix", "srun"),
    ],
)
def test_a_program_without_mpi_gets_the_mode_that_is_made_for_it(words, mode, launcher):
    Path("ddp.py").write_text(DDP)
    Path("other.py").write_text("import os\nprint(os.environ['RANK'])\n")
    text, _ = written("--nodes", "2", *words)
    assert f"mode {mode}" in text
    sets = {"torch": ("MASTER_ADDR",), "jax": ("JAX_COORDINATOR_ADDRESS",)}.get(mode, ())
    assert all(name in text for name in sets)
    assert f"{launcher} --nodes=2" in " ".join(text.split())
