"""Test the output of ``doctor --fix`` and ``launch --fix``."""

import json
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from tests.unit.engine.examples import with_
from tests.unit.image.sifs import sandbox
from tests.unit.image.test_inspect import BASE, OPEN_MPI_4
from tests.unit.tables import every_row
from toolkit.cli.doctor.command import command as doctor
from toolkit.errors import BadInput, CheckFailed
from toolkit.image.locks.recipe import parse
from toolkit.job.request.fixfile import load as load_fix
from toolkit.model.fix import Fix
from toolkit.probe.probe import load

EVIDENCE = Path(__file__).parents[2] / "evidence"
CLUSTER = str(EVIDENCE / "virtual-cluster-login.txt")


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def image(tmp_path: Path) -> str:
    return str(sandbox(tmp_path / "image", {**BASE, **OPEN_MPI_4}))


@pytest.fixture
def leaky(tmp_path: Path) -> str:
    host = with_(load(Path(CLUSTER)), environment={"OMPI_MCA_pml": "ucx"})
    file = tmp_path / "leaky.json"
    file.write_bytes(msgspec.json.encode(host))
    return str(file)


def run(*words: str):
    return CliRunner().invoke(doctor, words, obj={"verbose": False, "quiet": True})


def test_a_fix_is_written_shown_as_a_diff(image, leaky):
    result = run(image, "--facts", leaky, "--fix")
    assert result.exit_code == 0, result.output
    assert "--- without fix.toml" in result.stdout
    assert "+    -u OMPI_MCA_pml" in result.stdout
    assert "toolkit launch --fix fix.toml" in result.stdout
    assert "\x1b" not in result.stdout
    fix = load_fix(Path("fix.toml"))
    assert fix.launch.mode == "srun-pmix"
    assert "OMPI_MCA_pml" in fix.launch.unset


def test_an_earlier_version_is_replaced(image, leaky):
    run(image, "--facts", leaky, "--fix")
    first = Path("fix.toml").read_text()
    result = run(image, "--facts", CLUSTER, "--mode", "srun-pmi2", "--fix")
    assert result.exit_code == 0, result.output
    assert Path("fix.toml").read_text() != first


def test_the_same_fix_twice_changes_nothing(image, leaky):
    run(image, "--facts", leaky, "--fix")
    result = run(image, "--facts", leaky, "--fix")
    assert "is up to date" in result.stdout


@every_row("theirs", ["mine = 1\n", "", "\xff"])
def test_a_file_of_others_is_not_touched(image, leaky, theirs):
    Path("fix.toml").write_text(theirs, "latin-1")
    result = run(image, "--facts", leaky, "--fix")
    assert isinstance(result.exception, BadInput)
    assert "did not write it" in result.exception.message
    assert Path("fix.toml").read_text("latin-1") == theirs


def test_a_folder_and_a_broken_link_are_not_overwritten(image, leaky):
    Path("folder").mkdir()
    Path("link").symlink_to("nowhere")
    for name in ("folder", "link"):
        assert isinstance(run(image, "--facts", leaky, "--fix", "-o", name).exception, BadInput)


def test_nothing_to_fix(image):
    result = run(image, "--facts", CLUSTER, "--fix")
    assert result.exit_code == 0
    assert "Nothing to fix" in result.stdout
    assert not Path("fix.toml").exists()
    assert json.loads(run(image, "--facts", CLUSTER, "--fix", "--json").stdout)["kind"] is None


def test_a_recipe_where_only_another_image_helps(tmp_path):
    plain = str(sandbox(tmp_path / "image", BASE))
    result = run(plain, "--facts", CLUSTER, "--fix", "-o", "matched.toml")
    assert result.exit_code == 0, result.output
    assert "toolkit image build ./matched.toml" in result.stdout
    text = Path("matched.toml").read_text()
    assert parse(text, "matched.toml").want["openmpi"] == "5.0.7"
    told = json.loads(run(plain, "--facts", CLUSTER, "--fix", "-o", "matched.toml", "--json").stdout)
    assert (told["schema"], told["kind"]) == ("toolkit.fixed/1", "recipe")


def test_nothing_that_helps(image, tmp_path):
    result = run(image, "--facts", str(EVIDENCE / "no-slurm.txt"), "--fix")
    assert isinstance(result.exception, CheckFailed)
    assert not Path("fix.toml").exists()


def test_the_json_of_a_fix(image, leaky):
    told = json.loads(run(image, "--facts", leaky, "--fix", "--json").stdout)
    assert set(told) == {"schema", "kind", "file", "diff", "fix", "before"}
    assert told["kind"] == "launch"
    assert msgspec.convert(told["fix"], Fix) == load_fix(Path("fix.toml"))


@every_row(
    ("words", "said"),
    [
        (["--live", "--fix"], "--live and --fix"),
        (["--live"], "--live and --facts"),
        (["-o", "x"], "-o"),
        (["--mode", "srun-pmix", "--mode", "srun-pmi2"], "--mode"),
    ],
)
def test_options_that_do_not_go_together(image, words, said):
    result = run(image, "--facts", CLUSTER, *words)
    assert isinstance(result.exception, BadInput)
    assert result.exception.message.startswith(said)


def test_live_and_fix_need_an_image():
    assert isinstance(run("--facts", CLUSTER, "--fix").exception, BadInput)


GOOD = 'schema = "toolkit.fix/1"\n\n[launch]\nmode = "srun-pmix"\n'


@every_row(
    ("text", "said"),
    [
        ("x =", "f.toml:1: this is not TOML"),
        (GOOD.replace("srun-pmix", "srun"), "f.toml:4: launch.mode: 'srun' is not an allowed value"),
        (GOOD.replace("toolkit.fix/1", "toolkit.recipe/1"), "f.toml:1: schema: "),
        (GOOD + "bind = []\n", "f.toml:5: launch.bind: unknown field; choices: mode, container"),
        ("x = 1\n" + GOOD, "f.toml:1: x: unknown field; choices: schema, launch"),
        ('schema = "toolkit.fix/1"\n', "launch: this field is required"),
        (GOOD + "binds = 3\n", "f.toml:5: launch.binds: expected 'array', got 'int'"),
        (GOOD + "[launch.env]\nA = 1\n", "launch.env: expected 'str', got 'int'"),
        (GOOD + '[launch.env]\n"A B" = "1"\n', "f.toml:5: launch.env: 'A B': not a valid variable name"),
        (GOOD + 'unset = ["A=B"]\n', "f.toml:5: launch.unset: 'A=B': not a valid variable name"),
    ],
)
def test_a_bad_file_is_told_with_line_field_and_choices(tmp_path, text, said):
    file = tmp_path / "f.toml"
    file.write_text(text)
    with pytest.raises(BadInput) as raised:
        load_fix(file)
    assert said in raised.value.message
    assert "\n" not in raised.value.message


def test_a_file_that_cannot_be_read(tmp_path):
    with pytest.raises(BadInput, match="No such file"):
        load_fix(tmp_path / "none.toml")
    (tmp_path / "bytes").write_bytes(b"\xff")
    with pytest.raises(BadInput, match="UTF-8"):
        load_fix(tmp_path / "bytes")
