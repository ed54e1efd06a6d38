"""Test secret values in commands: errors, warnings, and files that must not contain the value."""

import msgspec
import pytest
from click.testing import CliRunner

from tests.unit.cli.test_launch import image, prepared  # noqa: F401 - a fixture
from tests.unit.cli.test_scale import Cluster, points
from tests.unit.launch.recorded import Recorded
from tests.unit.tables import every_row
from toolkit.cli import launch, scale
from toolkit.errors import BadInput
from toolkit.job.request import layering
from toolkit.launch.tracking import records, submission
from toolkit.model.hidden import Hidden

CANARY = "c4n4ry-value"


@pytest.fixture(autouse=True)
def _own_home(tmp_path, monkeypatch):
    for variable in ("HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "TOOLKIT_CACHE_DIR"):
        monkeypatch.setenv(variable, str(tmp_path))
    monkeypatch.chdir(tmp_path)


def env_file(tmp_path, text=f"MY_VALUE={CANARY}\n", mode=0o600):
    file = tmp_path / "my.env"
    file.write_text(text)
    file.chmod(mode)
    return str(file)


def text_below(folder):
    return "\n".join(file.read_text("utf-8", "replace") for file in folder.rglob("*") if file.is_file())


@every_row("mode", [0o640, 0o604, 0o660, 0o644])
def test_an_env_file_that_others_may_read_is_refused(tmp_path, mode):
    with pytest.raises(BadInput, match="other users may read or change the file") as raised:
        layering.merge_request({"env_file": env_file(tmp_path, mode=mode)}, ("true",))
    assert raised.value.fix == f"run `chmod 600 {tmp_path}/my.env`, so that only you can read the file"


def test_an_env_file_gives_hidden_values_and_options_win(tmp_path):
    file = env_file(tmp_path, f"MY_VALUE={CANARY}\nOTHER=1\n")
    env = layering.merge_request({"env_file": file, "env": {"OTHER": "2"}}, ("true",)).job.env
    assert env == {"MY_VALUE": CANARY, "OTHER": "2"}
    assert type(env["MY_VALUE"]) is Hidden


def test_a_line_of_an_env_file_is_told_without_its_value(tmp_path):
    with pytest.raises(BadInput) as raised:
        layering.merge_request({"env_file": env_file(tmp_path, f"A=1\nA B={CANARY}\n")}, ("true",))
    assert f"{tmp_path}/my.env:2 A B: not a valid variable name" in raised.value.message
    assert CANARY not in raised.value.message


@pytest.mark.parametrize("text", ["env: [MY_VALUE, PLAIN=1]", "env:\n  MY_VALUE:\n  PLAIN: 1"])
def test_a_job_file_names_a_variable_of_the_caller(tmp_path, monkeypatch, text):
    monkeypatch.setenv("MY_VALUE", CANARY)
    (tmp_path / "job.yaml").write_text(f"command: ['true']\n{text}\n")
    env = layering.merge_request({}, (), "job.yaml").job.env
    assert env == {"MY_VALUE": CANARY, "PLAIN": "1"}
    assert [type(value) for value in env.values()] == [Hidden, str]
    monkeypatch.delenv("MY_VALUE")
    with pytest.raises(BadInput, match=r"job.yaml: env MY_VALUE: the variable is not set"):
        layering.merge_request({}, (), "job.yaml")


def test_a_value_with_the_name_of_a_secret_is_hidden_wherever_it_is_written(tmp_path):
    (tmp_path / "job.yaml").write_text(f"command: ['true']\nenv: {{MY_TOKEN: {CANARY}}}\n")
    found = layering.merge_request({}, (), "job.yaml")
    assert type(found.job.env["MY_TOKEN"]) is Hidden
    assert CANARY not in "\n".join(found.notes(explain=True))
    assert "MY_TOKEN=[hidden]" in "\n".join(found.notes(explain=True))


def test_a_secret_on_the_command_line_is_warned_of(tmp_path):
    words = ("--env", f"MY_TOKEN={CANARY}", "--image", str(tmp_path / "nope.sif"), "--", "true")
    done = CliRunner().invoke(launch.command, words, obj={"verbose": False, "quiet": False})
    assert "warning: --env MY_TOKEN=…: the value of MY_TOKEN is in the argument list" in done.stderr
    assert "export the variable and write --env MY_TOKEN" in done.stderr
    assert CANARY not in done.output


def test_neither_record_nor_script_has_a_value_and_the_job_folder_gets_it(image, tmp_path, monkeypatch):  # noqa: F811
    monkeypatch.setenv("MY_VALUE", CANARY)
    job = prepared(image, env={"MY_VALUE": Hidden(CANARY), "OMPI_MCA_x": Hidden(CANARY), "PLAIN": "1"})
    assert job.record.spec.env == {"PLAIN": "1"}
    assert job.record.spec.secrets == ("MY_VALUE", "OMPI_MCA_x")
    assert CANARY not in job.script
    place = Recorded(sbatch=["7\n"])
    record = submission.submit(place, job.record, job.script, job.secrets)
    assert CANARY.encode() not in msgspec.json.encode(record)
    assert CANARY not in text_below(records.jobs_dir())
    assert not any(CANARY in word for words in place.ran for word in words)
    assert CANARY.encode() in place.files[f"{record.spec.directory}/secrets.sh"]


def test_a_study_keeps_the_names_alone_and_each_run_gets_the_values(tmp_path, monkeypatch):
    cluster = Cluster(monkeypatch)
    monkeypatch.setenv("MY_VALUE", CANARY)
    file = env_file(tmp_path, f"FROM_FILE={CANARY}\n")
    words = [
        "mnist",
        "--ranks",
        "1",
        "--repeat",
        "1",
        "--env",
        f"WANDB_API_KEY={CANARY}",
        "--env",
        "MY_VALUE",
    ]
    done = CliRunner().invoke(
        scale.command, [*words, "--env", "A=1", "--env-file", file], obj={"verbose": False, "quiet": True}
    )
    assert done.exception is None, done.exception
    assert cluster.jobs[0].env == {"FROM_FILE": CANARY, "WANDB_API_KEY": CANARY, "MY_VALUE": CANARY, "A": "1"}
    study = tmp_path / "studies" / "mnist"
    assert CANARY not in text_below(study)
    assert '"MY_VALUE"' in (study / "study.json").read_text()
    assert points(tmp_path)[0].state == "measured"


def test_a_study_compares_no_secrets():
    words = ["mnist", "--ranks", "1", "--compare", f"MY_TOKEN={CANARY},b"]
    done = CliRunner().invoke(scale.command, words, obj={"verbose": False, "quiet": True})
    assert isinstance(done.exception, BadInput)
    assert "MY_TOKEN looks like the name of a secret" in done.exception.message
