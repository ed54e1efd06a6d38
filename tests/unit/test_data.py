import pytest

from tests.unit.tables import every_row
from toolkit import data
from toolkit.errors import BadInput, Missing


def test_shipped_folders_are_there():
    for kind in ("containers", "recipes", "slurm"):
        assert data.shipped_folder(kind).is_dir()


def test_folders_follow_xdg_and_ignore_relative_values(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", "/home/x")
    monkeypatch.delenv("TOOLKIT_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", "relative")
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    assert data.cache_dir() == tmp_path / "toolkit"
    assert str(data.state_dir()) == "/home/x/.local/state/toolkit"
    assert str(data.config_dir()) == "/home/x/.config/toolkit"
    monkeypatch.setenv("TOOLKIT_CACHE_DIR", "/scratch/cache")
    assert str(data.cache_dir()) == "/scratch/cache"


def test_without_a_home_it_says_what_to_set(monkeypatch):
    def nobody():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.setattr(data.Path, "home", nobody)
    with pytest.raises(Missing, match="toolkit cannot find your home folder") as caught:
        data.state_dir()
    assert caught.value.fix == "set HOME, or XDG_STATE_HOME"


def test_a_persons_own_file_comes_before_a_shipped_one(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    own = tmp_path / "toolkit" / "slurm"
    own.mkdir(parents=True)
    (own / "job.sh.j2").write_text("mine")
    assert data.find("slurm", "job", ".sh.j2") == own / "job.sh.j2"
    assert "job" in data.names("slurm", ".sh.j2")


def test_an_unknown_name_lists_the_choices():
    with pytest.raises(BadInput, match=r"slurm 'x': not found; choices: .*job"):
        data.find("slurm", "x", ".sh.j2")


@every_row(
    ("kind", "name", "said"),
    [
        ("recipes", "tf2.15-cp", "recipe 'tf2.15-cp': not found (did you mean tf2.15-cpu?); choices: "),
        ("recipes/datasets", "mnsit", "data set 'mnsit': not found (did you mean mnist?); choices: "),
    ],
)
def test_a_mistyped_name_is_told_with_the_one_that_is_close(kind, name, said):
    with pytest.raises(BadInput) as caught:
        data.find(kind, name, ".toml")
    assert caught.value.message.startswith(said)


def test_a_path_is_taken_as_it_is(tmp_path):
    file = tmp_path / "a.toml"
    file.touch()
    assert data.find("recipes", str(file), ".toml") == file
    with pytest.raises(BadInput, match="no such file"):
        data.find("recipes", str(tmp_path / "b.toml"), ".toml")
