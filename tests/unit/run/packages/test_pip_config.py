"""Test how toolkit finds the package indexes and folders that the user's pip uses."""

from pathlib import Path

from toolkit.run.packages.pip_config import PipPlaces, pip_places


def test_files_are_read_in_the_order_of_pip_and_a_variable_goes_first(tmp_path: Path) -> None:
    system, own = tmp_path / "xdg" / "pip", tmp_path / "home" / ".config" / "pip"
    for folder in (system, own):
        folder.mkdir(parents=True)
    (system / "pip.conf").write_text(
        "[global]\nextra-index-url = https://one.example/simple\nfind-links = /wheels\n"
    )
    (own / "pip.conf").write_text(
        "[global]\nextra-index-url =\n    https://two.example\n    https://three.example\n"
    )
    env = {"HOME": str(tmp_path / "home"), "XDG_CONFIG_DIRS": str(tmp_path / "xdg")}
    two = ("https://two.example", "https://three.example")
    assert pip_places(env) == PipPlaces(indexes=two, links=("/wheels",))
    assert pip_places({**env, "PIP_FIND_LINKS": "/a /b"}) == PipPlaces(indexes=two, links=("/a", "/b"))
    assert pip_places({**env, "PIP_EXTRA_INDEX_URL": ""}) == PipPlaces(links=("/wheels",))
    assert pip_places({**env, "PIP_CONFIG_FILE": "/dev/null"}) == PipPlaces()
    (system / "pip.conf").write_text("[global]\nno-index = true\n")
    assert pip_places(env).no_index
    assert not pip_places({**env, "PIP_NO_INDEX": "0"}).no_index


def test_a_file_that_cannot_be_read_counts_as_absent(tmp_path: Path) -> None:
    for content in (b"\xff\xfe", b"extra-index-url = x\n", b"[global\n", b"[install]\nfind-links = /x\n"):
        (tmp_path / "pip.conf").write_bytes(content)
        env = {
            "HOME": str(tmp_path),
            "XDG_CONFIG_DIRS": str(tmp_path),
            "PIP_CONFIG_FILE": str(tmp_path / "pip.conf"),
        }
        assert pip_places(env) == PipPlaces()
