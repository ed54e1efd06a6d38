"""Test which findings ``toolkit doctor`` hides because a site profile or a settings file silences them."""

import json
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner, Result

from tests.unit.image.sifs import sandbox
from tests.unit.image.test_inspect import BASE, OPEN_MPI_4
from tests.unit.tables import every_row
from toolkit.cli.doctor.command import command as doctor
from toolkit.cli.site import command as site_command
from toolkit.errors import BadInput
from toolkit.probe.probe import load

FACTS = Path(__file__).parents[2] / "evidence" / "virtual-cluster-login.txt"
FINDING = "shared-memory-small"
REASON = "our jobs mount a larger /dev/shm"
SILENCE = f'[silence]\n{FINDING} = "{REASON}"\n'
PROFILE = f'schema = "toolkit.site/1"\ntitle = "Ours"\n{SILENCE}'


@pytest.fixture
def words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    facts = tmp_path / "facts.json"
    facts.write_bytes(msgspec.json.encode(msgspec.structs.replace(load(FACTS), shm=1 << 20)))
    image = sandbox(tmp_path / "image", {**BASE, **OPEN_MPI_4})
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    return [str(image), "--facts", str(facts), "--ranks-per-node", "4"]


@pytest.fixture
def profile(tmp_path: Path) -> str:
    file = tmp_path / "ours.toml"
    file.write_text(PROFILE)
    return str(file)


def run(*given: str) -> Result:
    return CliRunner().invoke(doctor, given, obj={"verbose": False, "quiet": False})


def test_a_profile_silences_a_finding_and_all_shows_the_reason(words, profile):
    short, full = (run(*words, "--site", profile, *more) for more in ((), ("--all",)))
    loud = run(*words)
    assert FINDING in loud.stdout
    assert short.exit_code == full.exit_code == loud.exit_code == 0
    assert FINDING not in short.stdout
    assert "further findings" in " ".join(short.stdout.split())
    assert f"· silenced: {REASON}" in full.stdout


def test_json_has_every_finding_and_the_reason(words, profile):
    found = json.loads(run(*words, "--site", profile, "--json").stdout)
    assert FINDING in {finding["id"] for finding in found["findings"]}
    assert found["silenced"] == {FINDING: REASON}


def test_toolkit_site_and_the_settings_of_a_project_silence_without_an_option(words, profile, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setenv("TOOLKIT_SITE", profile)
        assert FINDING not in run(*words).stdout
    Path("toolkit.toml").write_text(SILENCE)
    assert FINDING not in run(*words).stdout


def test_an_error_is_never_hidden(words, tmp_path):
    facts = tmp_path / "facts.json"
    host = msgspec.structs.replace(load(facts), runtime=None)
    absent = {**host.absent, "runtime": "no container runtime"}
    facts.write_bytes(msgspec.json.encode(msgspec.structs.replace(host, absent=absent)))
    findings = json.loads(run(*words, "--json").stdout)["findings"]
    error = next(finding["id"] for finding in findings if finding["severity"] == "error")
    Path("toolkit.toml").write_text(f'[silence]\n{error} = "no"\n')
    for given in (words, words[1:3]):
        assert error in run(*given).stdout


def test_a_host_alone_hides_a_finding_and_counts_it(words):
    given = words[1:3]
    (finding, *_) = json.loads(run(*given, "--json").stdout)["findings"]
    Path("toolkit.toml").write_text(f'[silence]\n{finding["id"]} = "known"\n')
    assert finding["id"] not in run(*given).stdout
    assert "--all also shows 1 silenced finding." in run(*given).stdout
    assert "silenced: known" in run(*given, "--all").stdout


@every_row(
    ("line", "fault"),
    [
        (
            'shared-memory-smal = "x"',
            "silence.shared-memory-smal: unknown finding (did you mean shared-memory-small?)",
        ),
        (f'{FINDING} = " "', f"silence.{FINDING}: expected the reason for hiding this finding, on one line"),
        (f"{FINDING} = 1", "silence"),
    ],
)
def test_a_wrong_entry_is_refused(words, tmp_path, line, fault):
    Path("toolkit.toml").write_text(f"[silence]\n{line}\n")
    profile = tmp_path / "wrong.toml"
    profile.write_text(PROFILE.replace(SILENCE, f"[silence]\n{line}\n"))
    for given in (words, [*words, "--site", str(profile)]):
        error = run(*given).exception
        assert isinstance(error, BadInput)
        assert fault in error.message


def test_site_check_refuses_an_unknown_id(tmp_path):
    profile = tmp_path / "wrong.toml"
    profile.write_text(PROFILE.replace(FINDING, "no-such-rule"))
    error = CliRunner().invoke(site_command, ["check", str(profile), "--facts", str(FACTS)]).exception
    assert isinstance(error, BadInput)
    assert "no-such-rule" in error.message
