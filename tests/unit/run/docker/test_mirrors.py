"""Test how toolkit finds the mirrors in the machine's package sources."""

from toolkit.run.docker.mirrors import join_mirrors, of_machine, read_mirrors

ONE_LINE = """
# deb http://old.example/debian bookworm main
deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://mirror.example/debian/ bookworm main
deb http://mirror.example/debian-security bookworm-security main
deb https://other.example/apt stable main
"""
DEB822 = """
Types: deb
# http://past.example/archive/debian/20250520T000000Z
URIs: http://mirror.example/linux/debian http://second.example/debian
Suites: bookworm bookworm-updates
"""


def test_sources_of_one_line_are_read():
    assert read_mirrors(ONE_LINE) == {
        "debian": ("http://mirror.example/debian",),
        "debian-security": ("http://mirror.example/debian-security",),
    }


def test_sources_in_paragraphs_are_read():
    assert read_mirrors(DEB822) == {
        "debian": ("http://mirror.example/linux/debian", "http://second.example/debian"),
        "debian-security": (),
    }


def test_no_mirror_is_named_twice():
    assert join_mirrors(read_mirrors(DEB822), read_mirrors(ONE_LINE), read_mirrors(ONE_LINE))["debian"] == (
        "http://mirror.example/linux/debian",
        "http://second.example/debian",
        "http://mirror.example/debian",
    )


def test_the_mirror_of_the_environment_goes_first(monkeypatch, tmp_path):
    (tmp_path / "sources.list").write_text(ONE_LINE)
    monkeypatch.setattr("toolkit.run.docker.mirrors._SOURCES", (str(tmp_path), str(tmp_path / "none")))
    monkeypatch.setenv("TOOLKIT_DEBIAN_MIRROR", "http://own.example/debian/")
    assert of_machine() == {
        "debian": ("http://own.example/debian", "http://mirror.example/debian"),
        "debian-security": ("http://own.example/debian-security", "http://mirror.example/debian-security"),
    }
