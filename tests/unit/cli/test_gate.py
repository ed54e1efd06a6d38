"""Test that no command starts an image with a wrong signature, key or digest."""

import ast
import os
import shlex
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import click
import msgspec
import pytest
from click.testing import CliRunner

from tests.unit.cli.test_launch import Cluster
from tests.unit.cli.test_signed import ROOT, USER, flip
from tests.unit.image.signed import Keys, gpg_home, write_sif
from tests.unit.launch.examples import RECORD
from tests.unit.tables import every_row
from toolkit.cli.main import cli
from toolkit.errors import BadInput, CheckFailed, Missing, ToolkitError
from toolkit.files import hash_file
from toolkit.image.files.sif.sifobjects import JSON, Object
from toolkit.image.trust.signing import sign
from toolkit.job import live as doctor_live
from toolkit.job.request import gate
from toolkit.job.request.inputs import inspect_input
from toolkit.launch.tracking import records
from toolkit.model.progress import Silent
from toolkit.run.local import LocalRunner

OTHER = "other@example.org"
_PACKAGE = Path(gate.__file__).parents[2]


@pytest.fixture(scope="module")
def home() -> Iterator[Keys]:
    with gpg_home() as keys:
        keys.make(USER)
        keys.make(OTHER)
        yield keys


@pytest.fixture
def keys(home: Keys, monkeypatch: pytest.MonkeyPatch) -> Keys:
    monkeypatch.setenv("GNUPGHOME", str(home.home))
    return home


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "WORK", "TOOLKIT_CACHE_DIR"):
        monkeypatch.setenv(name, str(tmp_path))
    stubs = tmp_path / "bin"
    stubs.mkdir()
    for name, line in (
        ("sbatch", f'echo "$@" >>{tmp_path}/submitted; echo 7'),
        ("apptainer", f'echo "$@" >>{tmp_path}/started'),
        ("scontrol", "echo JobId=7 JobState=FAILED Reason=NonZeroExitCode ExitCode=3:0"),
        ("squeue", "true"),
    ):
        (stubs / name).write_text(f"#!/bin/sh\n{line}\n")
        (stubs / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{stubs}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def sif(place: Path) -> Path:
    return write_sif(place / "image.sif", Object(JSON, b'{"what":"a note"}', "note.json"), ROOT)


@pytest.fixture
def signed(keys: Keys, sif: Path) -> Path:
    sign(sif, USER, Silent())
    return sif


@pytest.fixture
def tampered(signed: Path) -> Path:
    flip(signed, 0)
    return signed


def tk(*words: str) -> ToolkitError | None:
    done = CliRunner().invoke(cli, words, obj={})
    assert done.exception is None or isinstance(done.exception, (ToolkitError, SystemExit)), done.exception
    return done.exception if isinstance(done.exception, ToolkitError) else None


def record(image: Path, **changes: object) -> str:
    folder = image.parent / "runs" / RECORD.key
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "job.sh").write_text("apptainer exec it\n")
    spec = msgspec.structs.replace(RECORD.spec, image=str(image), directory=str(folder), command=("true",))
    kept = msgspec.structs.replace(
        RECORD, spec=spec, image_digest=f"sha256:{hash_file(image)}", state="failed", exit_code=3, **changes
    )
    records.save(kept)
    return kept.key


def _local(image: Path) -> str:
    return record(image, id="", nodes=os.uname().nodename, started="2026-11-21T10:00:00")


WAYS: dict[str, Callable[[Path], tuple[str, ...]]] = {
    "launch": lambda i: (
        "launch",
        "--image",
        str(i),
        "--mode",
        "srun-pmi2",
        "--force",
        "--no-follow",
        "--",
        "true",
    ),
    "local": lambda i: ("launch", "--local", "--image", str(i), "--force", "--", "true"),
    "from-job": lambda i: ("launch", "--from-job", record(i), "--force", "--no-follow"),
    "notebook": lambda i: ("notebook", "--packages", "/w/jupyter", "--image", str(i)),
    "doctor": lambda i: ("doctor", str(i), "--live", "--mode", "srun-pmix"),
    "scale": lambda i: (
        *("scale", "--image", str(i), "--ranks", "1", "--retry", "0", "--force", "--mode", "srun-pmi2"),
        *("--pattern", "([0-9]+)", "--", "true"),
    ),
    "resume": lambda i: ("jobs", "resume", record(i)),
    "resume-here": lambda i: ("jobs", "resume", _local(i)),
}
"""A command for each way to start a container. These commands pass every check before the check of the
signature.
"""


def with_options(words: tuple[str, ...], *options: str) -> tuple[str, ...]:
    cut = words.index("--") if "--" in words else len(words)
    return (*words[:cut], *options, *words[cut:])


def refused(way: str, image: Path, *options: str) -> str:
    error = tk(*with_options(WAYS[way](image), *options))
    assert error is not None, "it was started"
    for mark in ("submitted", "started"):
        assert not (image.parent / mark).exists(), (mark, error.message)
    return "\n".join((error.message, *error.detail))


@pytest.fixture(autouse=True)
def _answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make hosts answer like the virtual cluster, and let ``doctor --live`` accept an image without MPI."""
    from toolkit.job import local, repeat, target
    from toolkit.probe.asking import of_job
    from toolkit.probe.probe import gather

    said = gather(Cluster(), of_job(None))
    host = said.host
    monkeypatch.setattr(target, "gather", lambda *_, **__: said)
    for module in (local, repeat, doctor_live):
        monkeypatch.setattr(module, "probe", lambda *_, **__: host)
    monkeypatch.setattr(doctor_live.trial, "library", lambda *_: "/usr/lib/libmpi.so")
    monkeypatch.setattr(doctor_live.trial, "programs", lambda *_: ())


@every_row("way", list(WAYS))
def test_no_way_starts_an_image_with_a_wrong_byte(way: str, tampered: Path):
    assert "content has changed since it was signed" in refused(way, tampered)


@every_row("way", WAYS)
def test_no_way_starts_an_image_without_the_key_that_an_option_demands(way: str, keys: Keys, signed: Path):
    other = keys.public(signed.parent / "other.asc", OTHER)
    assert "not among your trusted keys" in refused(way, signed, "--verify-key", str(other))


@every_row("way", WAYS)
def test_no_way_starts_an_unsigned_image_if_settings_require_a_key(way: str, keys: Keys, sif: Path):
    keys.public(sif.parent / "centre.asc", USER)
    (sif.parent / "toolkit.toml").write_text('[launch]\nverify_key = "centre.asc"\n')
    said = refused(way, sif)
    assert "has no signature" in said
    assert "toolkit.toml:2: verify_key requires a signature by a key in" in said


@every_row("way", list(WAYS))
def test_every_way_refuses_an_empty_key_before_anything_is_asked(way: str, sif: Path):
    error = tk(*with_options(WAYS[way](sif), "--verify-key", ""))
    assert isinstance(error, BadInput)
    assert error.message == "--verify-key: the value is empty"
    assert "shell variable" in error.fix


@every_row("way", ["launch", "from-job", "notebook", "resume"])
def test_the_record_says_what_was_found(way: str, keys: Keys, signed: Path, monkeypatch: pytest.MonkeyPatch):
    from toolkit.cli import notebook

    monkeypatch.setattr("toolkit.job.running.notebook_session.notebook.prepare", lambda *_: "token")
    monkeypatch.setattr("toolkit.job.running.notebook_session._use", lambda *_: None)
    assert notebook
    error = tk(*WAYS[way](signed))
    assert error is None, error.message
    kept = records.every()[-1]
    assert (kept.image_check.signature, kept.image_check.signers) == ("good", (keys.fingerprint(USER),))
    assert kept.image_digest == f"sha256:{hash_file(signed)}"
    script = (Path(kept.spec.directory) / "job.sh").read_text()
    assert way == "resume" or f"# image {kept.image_digest}, signature: good" in script


def test_no_verify_starts_it_and_the_record_says_so(tampered: Path):
    assert tk(*with_options(WAYS["launch"](tampered), "--no-verify")) is None
    assert records.every()[-1].image_check.signature == "not-checked"


def site(folder: Path, override: bool) -> str:
    profile = folder / "centre.toml"
    profile.write_text(
        'schema = "toolkit.site/1"\ntitle = "Centre"\n[container]\ncommand = "apptainer"\n'
        f'[image]\nverify_key = "centre.asc"\noverride = {str(override).lower()}\n'
    )
    return str(profile)


def test_a_key_that_a_site_requires_cannot_be_dropped_or_replaced(keys: Keys, sif: Path):
    keys.public(sif.parent / "centre.asc", USER)
    other = keys.public(sif.parent / "other.asc", OTHER)
    profile = site(sif.parent, override=False)
    for way in ("launch", "notebook", "scale"):
        assert "requires a signature" in refused(way, sif, "--site", profile, "--no-verify")
        assert "image.verify_key requires a signature by a key in" in refused(way, sif, "--site", profile)
    sign(sif, OTHER, Silent())
    said = refused("launch", sif, "--site", profile, "--verify-key", str(other))
    assert "image.verify_key requires a signature by a key in" in said
    sign(sif, USER, Silent())
    assert tk(*with_options(WAYS["launch"](sif), "--site", profile, "--verify-key", str(other))) is None
    assert len(records.every()[-1].image_check.signers) == 2


def test_a_site_may_permit_another_key_or_none(keys: Keys, sif: Path):
    keys.public(sif.parent / "centre.asc", USER)
    profile = site(sif.parent, override=True)
    assert "has no signature" in refused("launch", sif, "--site", profile)
    assert tk(*with_options(WAYS["launch"](sif), "--site", profile, "--no-verify")) is None


@every_row("value", ['""', "3"])
def test_an_empty_key_in_settings_or_the_environment_is_refused(value, sif: Path, monkeypatch):
    (sif.parent / "toolkit.toml").write_text(f"[launch]\nverify_key = {value}\n")
    error = tk(*WAYS["launch"](sif))
    assert isinstance(error, BadInput)
    assert error.message.startswith("toolkit.toml:2: verify_key: ")
    (sif.parent / "toolkit.toml").unlink()
    monkeypatch.setenv("TOOLKIT_VERIFY_KEY", "")
    assert tk(*WAYS["launch"](sif)).message == "TOOLKIT_VERIFY_KEY: the value is empty"


def test_a_required_key_without_gpg_starts_nothing(keys: Keys, signed: Path, monkeypatch):
    key = keys.public(signed.parent / "k.asc", USER)
    for name in ("sh", "uname", "sha256sum"):
        (signed.parent / "bin" / name).symlink_to(f"/usr/bin/{name}")
    monkeypatch.setenv("PATH", str(signed.parent / "bin"))
    assert "gpg is not installed" in refused("launch", signed, "--verify-key", str(key))


def test_a_gpg_without_a_home_says_so_and_advises_no_unchecked_start(signed: Path, monkeypatch):
    monkeypatch.delenv("GNUPGHOME")
    monkeypatch.setenv("HOME", "/nonexistent")
    error = tk(*WAYS["launch"](signed))
    assert isinstance(error, Missing)
    assert "can't create directory '/nonexistent/.gnupg'" in error.message
    assert error.fix == "set GNUPGHOME to your own writable folder"


def test_a_gpg_that_cannot_open_its_keys_does_not_pass_for_a_key_that_is_not_here(signed: Path, monkeypatch):
    monkeypatch.setenv("GNUPGHOME", "/nonexistent")
    assert "keyblock resource '/nonexistent/pubring.kbx'" in refused("launch", signed)


def test_a_demanded_key_is_checked_without_a_home(keys: Keys, signed: Path, monkeypatch):
    key = keys.public(signed.parent / "k.asc", USER)
    monkeypatch.delenv("GNUPGHOME")
    monkeypatch.setenv("HOME", "/nonexistent")
    assert tk(*with_options(WAYS["launch"](signed), "--verify-key", str(key))) is None


@every_row("way", list(WAYS))
def test_advice_to_leave_the_check_out_is_never_given_for_a_wrong_byte(way: str, tampered: Path):
    error = tk(*WAYS[way](tampered))
    assert error is not None
    assert "--no-verify" not in error.fix


def test_an_image_that_changes_while_it_is_read_does_not_start(signed: Path, place: Path):
    found = inspect_input(LocalRunner(), signed, None, Silent(), remote=False)
    newer = place / "newer"
    newer.write_bytes(signed.read_bytes())
    newer.replace(signed)
    with pytest.raises(CheckFailed, match="changed while toolkit read it"):
        gate.clear(found, gate.KeyDemand(), Silent())


def test_a_record_from_before_images_were_checked_is_not_submitted(place: Path):
    from toolkit.launch.tracking.submission import submit

    old = msgspec.structs.replace(RECORD, image_check=None)
    with pytest.raises(CheckFailed, match="the job record does not say whether toolkit checked the image's"):
        submit(LocalRunner(), old, "#!/bin/sh\n")


def calls(name: str) -> set[str]:
    """Return all functions of toolkit, as ``file:function``, that call a function with this name."""
    last = name.rpartition(".")[2]
    return {
        f"{file}:{function.name}"
        for file, text in _texts().items()
        if last in text
        for function in _functions(file)
        for node in ast.walk(function)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == name
    }


@cache
def _texts() -> dict[str, str]:
    files = [file for file in _PACKAGE.rglob("*.py") if "trainers" not in file.parts]
    return {str(file.relative_to(_PACKAGE)): file.read_text("utf-8") for file in files}


@cache
def _functions(file: str) -> list[ast.FunctionDef]:
    return [node for node in ast.walk(ast.parse(_texts()[file])) if isinstance(node, ast.FunctionDef)]


def test_records_are_made_of_what_passed_the_gate_alone():
    assert calls("JobRecord") == {"job/prepare.py:make_record"}
    assert calls("ImageClearance") == {"job/request/gate.py:clear", "job/request/gate.py:clear_again"}
    assert calls("before_launch") == {"job/request/gate.py:_signatures"}


def test_whatever_submits_or_starts_is_among_the_ways_that_are_tried_here():
    starts = ("submission.submit", "submit", "resubmit", "run_local", "run_again", "submit_job")
    assert {name for start in starts for name in calls(start)} == {
        "job/submit.py:submit_job",
        "job/submit.py:_submit_ready",  # launch, launch --from-job
        "job/scale_point.py:submit",  # scale
        "job/running/notebook_session.py:start_notebook",  # notebook
        "job/live.py:_try",  # doctor --live
        "job/local.py:launch_here",  # launch --local
        "job/running/resume.py:resume",
        "job/running/resume.py:submit_again",  # jobs resume, launch --requeue
        "launch/tracking/local_run.py:run_again",  # jobs resume of a job of launch --local
    }


def test_every_command_that_starts_an_image_takes_both_options():
    paths = (("launch",), ("notebook",), ("doctor",), ("scale",), ("jobs", "resume"))
    for path in paths:
        command: click.Command = cli
        for name in path:
            assert isinstance(command, click.Group)
            command = command.get_command(click.Context(command), name)
        options = {word for param in command.params for word in param.opts}
        assert {"--verify-key", "--no-verify"} <= options, shlex.join(path)
