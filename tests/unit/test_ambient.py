"""Test the files that toolkit uses although no option names them: toolkit refuses a file that another user
can write.
"""

import os
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.unit.image.sifs import DATA, sif
from tests.unit.tables import every_row
from toolkit import data
from toolkit.ambient import read_trusted, require_trusted
from toolkit.cli.main import cli
from toolkit.errors import BadInput
from toolkit.image.locks.lock import load_lock
from toolkit.job.request.locations import image_here
from toolkit.knowledge import sites

_NOBODY = 65534


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    folder = tmp_path / "project"
    folder.mkdir(0o755)
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def file(here: Path) -> Path:
    made = here / "toolkit.toml"
    made.write_text('[launch]\nimage = "x.sif"\nenv = { LD_PRELOAD = "evil.so" }\nsbatch = ["--hold"]\n')
    made.chmod(0o644)
    return made


def launched(*words: str):
    return CliRunner().invoke(cli, ("launch", *words, "--dry-run", "--site", "juwels", "--", "true"), obj={})


def refused(*words: str) -> BadInput:
    error = launched(*words).exception
    assert isinstance(error, BadInput), error
    return error


@every_row(
    ("mode", "who"), [(0o664, "the group of {} can write to it"), (0o646, "every user can write to {}")]
)
def test_settings_that_others_may_write_are_refused_with_the_mode_to_take_away(file: Path, mode, who):
    file.chmod(mode)
    error = refused()
    assert error.message == f"toolkit.toml: not used: {who.format(file)}"
    assert error.fix == f"`chmod go-w {file}`"


@every_row("mode", [0o775, 0o757, 0o1777])
def test_settings_in_a_folder_that_others_may_write_are_refused(file: Path, mode):
    file.parent.chmod(mode)
    error = refused()
    assert str(file.parent) in error.message
    shared_on_purpose = mode == 0o1777
    assert error.fix == (
        "move the file into your own folder" if shared_on_purpose else f"`chmod go-w {file.parent}`"
    )


@every_row("what", ["file", "folder"])
def test_settings_of_somebody_else_are_refused(file: Path, monkeypatch: pytest.MonkeyPatch, what):
    place = file if what == "file" else file.parent
    if os.geteuid() == 0:
        os.chown(place, _NOBODY, _NOBODY)
    else:  # only root can change a file's owner
        monkeypatch.setattr(os, "geteuid", lambda: _NOBODY)
    error = refused()
    assert f"{place} belongs to " in error.message if os.geteuid() == 0 else "belongs to" in error.message
    assert "not to you or root" in error.message


def test_a_link_is_judged_by_what_it_leads_to(here: Path, tmp_path: Path):
    shared = tmp_path / "shared"
    shared.mkdir()
    (shared / "theirs.toml").write_text("[launch]\nnodes = 2\n")
    (here / "toolkit.toml").symlink_to(shared / "theirs.toml")
    require_trusted(Path("toolkit.toml"))
    shared.chmod(0o777)
    assert f"every user can write to {shared}" in refused().message


def test_a_fifo_by_the_name_of_the_settings_is_refused_and_not_waited_for(here: Path):
    os.mkfifo(here / "toolkit.toml", 0o600)
    with pytest.raises(BadInput, match="a FIFO"):
        read_trusted(Path("toolkit.toml"), limit=10)


def test_the_first_line_of_output_names_what_came_from_the_settings(file: Path):
    done = launched()
    assert done.exit_code == 0, done.exception
    assert done.stderr.splitlines()[0] == "toolkit.toml: image, env, sbatch"
    assert "toolkit.toml" not in done.stdout


def test_it_is_named_with_quiet_too_but_not_what_an_option_replaces(file: Path):
    words = ("--image", "y.sif", "--sbatch=--comment=x", "--dry-run", "--site", "juwels", "--", "true")
    done = CliRunner().invoke(cli, ("--quiet", "launch", *words), obj={})
    assert done.stderr.splitlines()[0] == "toolkit.toml: env"


def test_without_such_a_file_nothing_is_said_of_it(here: Path):
    assert "toolkit.toml" not in launched("--image", "x.sif").stderr


def test_a_users_own_settings_profiles_recipes_and_locks_have_to_be_his_alone(here: Path, tmp_path: Path):
    config = data.config_dir()
    for name, content in (
        ("config.toml", "[launch]\nnodes = 2\n"),
        ("sites/mine.toml", 'schema = "toolkit.site/1"\ntitle = "Mine"\n'),
        ("sites/mine.facts.json", "{}"),
        ("recipes/mine.toml", ""),
        ("recipes/mine.lock.json", "{}"),
    ):
        path = config / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    assert sites.site("mine").title == "Mine"
    assert sites.facts_file("mine").is_file()
    assert data.find("recipes", "mine", ".toml").is_file()
    for name, use in (
        ("sites/mine.facts.json", lambda: sites.facts_file("mine")),
        ("sites/mine.toml", lambda: sites.site("mine")),
        ("recipes/mine.lock.json", lambda: load_lock("mine")),
        ("recipes/mine.toml", lambda: data.find("recipes", "mine", ".toml")),
    ):
        (config / name).chmod(0o666)
        with pytest.raises(BadInput, match="every user can write to"):
            use()
        (config / name).chmod(0o644)
    (config / "config.toml").chmod(0o666)
    assert "config.toml: not used: every user can write to" in refused("--image", "x.sif").message


@every_row("name", ["tf2.15-cpu.sif", "images/tf2.15-cpu.sif", "tf2.15-cpu"])
def test_an_image_that_only_its_name_leads_to_has_to_be_the_users_own(here: Path, name):
    image = here / name
    image.parent.mkdir(exist_ok=True)
    image.write_bytes(sif((DATA / "tiny.gzip").read_bytes()))
    assert image_here("tf2.15-cpu") == image
    image.chmod(0o666)
    with pytest.raises(BadInput, match="every user can write to") as caught:
        image_here("tf2.15-cpu")
    assert caught.value.fix.endswith(f"; or name the file: --image ./{name}")
    assert image_here(f"./{name}") == image
