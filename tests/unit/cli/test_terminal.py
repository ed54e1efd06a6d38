"""Test that toolkit's output on a terminal contains no control codes from images, jobs and files."""

import json
import os
import re
from pathlib import Path

import msgspec
import pytest

from tests import forked
from tests.unit.image import locks
from tests.unit.image.sifs import sandbox, sif, squashfs
from tests.unit.image.test_inspect import STACK
from tests.unit.launch.examples import RECORD, SPEC
from tests.unit.launch.test_local import tools
from tests.unit.report.trainings import EPOCHS, HEADER
from tests.unit.study.studies import kept, point, study
from tests.unit.tables import every_row
from tests.unit.terminal import FORGED, HOSTILE, STEERING, assert_harmless, on_a_terminal
from toolkit.launch.tracking import records
from toolkit.model.lock import encode_lock
from toolkit.report.job import jobs_table

EVIDENCE = Path(__file__).parents[2] / "evidence" / "virtual-cluster-login.txt"
SITE = "/opt/toolkit/venv/lib/python3.11/site-packages"


def shown(words: list[object], **env: str) -> str:
    written = on_a_terminal([str(word) for word in words], **env)
    assert_harmless(written, live=True)
    text = written.decode()
    assert "\\u202e" in text, text
    return text


@pytest.fixture
def home(tmp_path, monkeypatch):
    for name in ("XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.setenv(name, str(tmp_path / name))
    return tmp_path


@pytest.fixture
def image(tmp_path):
    text = json.dumps({**STACK, "recipe": HOSTILE})
    release = f"ID={STEERING}\nVERSION_ID=1\n"
    return sandbox(tmp_path / "box", {"/etc/os-release": release, "/opt/toolkit/stack.json": text})


@every_row("verb", [["image", "inspect"], ["doctor"], ["image", "adopt"]])
def test_an_image_cannot_steer_the_terminal_of_who_looks_into_it(image, tmp_path, verb):
    more = ["--facts", EVIDENCE] if verb == ["doctor"] else []
    more = ["-o", tmp_path / "adopted"] if verb == ["image", "adopt"] else more
    assert "\\u001b]0;OWNED" in shown([*verb, image, *more])


def test_the_recipe_that_an_image_names_stays_on_its_line(image):
    text = shown(["image", "inspect", image], COLUMNS="1000")
    assert f"\\n{FORGED} ok" in text


@pytest.fixture
def hostile_sif(tmp_path):
    files = {"/etc/os-release": b"ID=debian\n"}
    stem = "bad-1.dist-info"
    lock = locks.lock(recipe=HOSTILE)
    own = [msgspec.structs.replace(one, name=HOSTILE, version=HOSTILE) for one in lock.run.wheels[:1]]
    debian = [msgspec.structs.replace(one, name=HOSTILE, version=HOSTILE) for one in lock.run.debian[:1]]
    run = msgspec.structs.replace(lock.run, wheels=tuple(own), debian=tuple(debian))
    files["/opt/toolkit/lock.json"] = encode_lock(msgspec.structs.replace(lock, run=run))
    manifest = {"schema": "toolkit.manifest/1", "files": {f"/opt/{HOSTILE}": "00"}}
    files["/opt/toolkit/manifest.json"] = json.dumps(manifest).encode()
    status = f"Package: dash\nStatus: install ok installed\nVersion: {STEERING}\n\n"
    files["/var/lib/dpkg/status"] = status.encode()
    files[f"{SITE}/{stem}/METADATA"] = f"Name: bad\nVersion: {STEERING}\n".encode()
    path = tmp_path / "hostile.sif"
    path.write_bytes(sif(squashfs(files)))
    return path


def test_verify_shows_a_hostile_lock_and_names_of_files_on_their_lines(hostile_sif):
    text = shown(["image", "verify", hostile_sif, "--unsigned"])
    lines = [line for line in text.replace("\r", "").split("\n") if "\\u202e" in line]
    assert all(any(check in line[:20] for line in lines) for check in ("lock ", "files "))
    assert "lock.json: recipe: expected a recipe name of" in text


def test_evidence_of_a_cluster_is_shown_by_doctor_and_stays_in_its_column(tmp_path, image):
    text = EVIDENCE.read_text()
    text = text.replace("|ID=debian", f"|ID={STEERING}").replace("mpirun", f"mpirun{STEERING}")
    facts = tmp_path / "facts.txt"
    facts.write_text(text)
    assert shown(["doctor", "--facts", facts]).count("\\u001b]0;OWNED") >= 1
    shown(["doctor", image, "--facts", facts], NO_COLOR="")


def test_a_study_with_a_hostile_name_is_refused_and_a_strange_one_is_shown(tmp_path):
    points = [point(n, 8 / n) for n in (1, 2, 4)]
    sizes = [(1, 1), (2, 1), (4, 1)]
    refused = kept(tmp_path / "refused", study(sizes, name=HOSTILE), points)
    said = b" ".join(on_a_terminal(["report", str(refused), "--text"]).split())
    assert b"name: expected one line of printable text" in said
    strange = kept(tmp_path / "strange", study(sizes, name="\u00e9tude \u4e00 <b>$x$"), points)
    assert "\u00e9tude \u4e00 <b>$x$" in on_a_terminal(["report", str(strange), "--text"]).decode()


@every_row("field", ["trainer", "strategy"])
def test_metrics_name_their_trainer_and_strategy_without_effect(tmp_path, field):
    lines = [json.dumps({**HEADER, field: HOSTILE}), *map(json.dumps, EPOCHS)]
    (tmp_path / "metrics.jsonl").write_text("\n".join(lines) + "\n")
    shown(["report", tmp_path])


def test_logs_of_a_job_are_shown_as_launch_shows_them(home):
    records.save(msgspec.structs.replace(RECORD, state="completed"))
    output = f"\x1b[32mgreen\x1b[0m\n{STEERING}\n"
    (records.folder(RECORD.key) / records.OUTPUT).write_text(output)
    text = shown(["jobs", "logs", RECORD.key])
    assert text.startswith("green\r\n")


def test_a_job_that_runs_here_cannot_steer_the_terminal(home):
    path = f"{tools(home)}:/usr/bin:/bin"
    image = home / "my.sif"
    image.write_bytes(sif(squashfs({"/etc/os-release": b"ID=debian\n"})))
    words = ["launch", "--local", "--image", image, "--no-preflight", "--force", "--directory", home / "run"]
    text = shown([*words, "--", "printf", "%s\\n", STEERING], PATH=path, IMAGE=str(image))
    assert "\\u009b2J" in text


def test_a_record_of_a_job_is_shown_as_text(home):
    spec = msgspec.structs.replace(SPEC, command=("echo", HOSTILE), directory=f"/work/{HOSTILE}")
    records.save(msgspec.structs.replace(RECORD, state="completed", spec=spec, place=HOSTILE, nodes=HOSTILE))
    shown(["jobs", "show", RECORD.key])
    assert HOSTILE not in jobs_table([(records.find(RECORD.key), True)], None)


@every_row("verb", [["image", "inspect"], ["explain"], ["report"], ["doctor"]])
def test_an_error_names_a_file_with_a_hostile_name_on_one_line(home, verb):
    shown([*verb, home / HOSTILE.replace("/", "_")])


def test_a_line_of_progress_names_a_file_with_a_hostile_name(home):
    name = home / f"{STEERING}.sif"
    name.write_bytes(sif(squashfs({"/etc/os-release": b"ID=debian\n"})))
    shown(["image", "verify", name, "--unsigned"])
    shown(["image", "verify", name, "--unsigned"], TERM="dumb")


def test_a_traceback_is_filtered_too(home):
    code = f"""
from toolkit.cli import main
def fail(*words, obj, **more):
    obj["debug"] = True
    raise ValueError({HOSTILE!r})
main.cli.main = fail
main.main(["--help"])
"""
    written = on_a_terminal([], code=code)
    assert_harmless(written.replace(FORGED.encode(), b"forged"))
    assert b"Traceback" in written


@every_row("encoding", ["utf-8", "ascii"])
def test_no_encoding_of_the_terminal_goes_around_the_door(image, encoding):
    written = on_a_terminal(["image", "inspect", str(image)], PYTHONIOENCODING=encoding)
    assert_harmless(written, live=True)
    assert b"OWNED" in written


def test_colours_of_toolkit_reach_a_terminal_and_those_of_an_image_do_not(image):
    text = shown(["doctor", image, "--facts", EVIDENCE], NO_COLOR="")
    assert "\x1b[1m" in text
    assert "\x1b[31mOWNED" not in text


def test_in_a_pipe_text_is_filtered_as_on_a_terminal(image):
    done = forked.run(["image", "inspect", image])
    assert done.returncode == 0
    assert_harmless(done.stdout)
    assert b"\\u001b]0;OWNED" in done.stdout
    assert b"\\u009b2J" in done.stdout


def test_json_keeps_its_value_and_holds_no_hidden_character(image):
    done = forked.run(["image", "inspect", "--json", image])
    assert done.returncode == 0
    assert_harmless(done.stdout)
    assert json.loads(done.stdout)["stack"]["recipe"] == HOSTILE
    assert_harmless(on_a_terminal(["image", "inspect", "--json", str(image)]), live=True)


def test_a_script_is_exact_in_a_pipe_and_harmless_on_a_terminal(home):
    image = home / "my.sif"
    image.write_bytes(sif(squashfs({"/etc/os-release": b"ID=debian\n"})))
    path = f"{tools(home)}:/usr/bin:/bin"
    words = ["launch", "--local", "--dry-run", "--no-preflight", "--force", "--image", str(image)]
    words += ["--", "echo", STEERING]
    done = forked.run(words, env={**os.environ, "PATH": path})
    assert done.returncode == 0
    assert STEERING.encode() in done.stdout
    shown(words, PATH=path)


def test_long_names_and_long_messages_are_cut(home):
    for word in ("y" * 300, "y/" * 3000, "y z " * 1500):
        done = forked.run(["report", word])
        said = done.stderr.decode()
        assert done.returncode
        assert max(map(len, re.split(r"\s", said))) <= 200
        assert len(said) < 4200
        assert "…" in said
