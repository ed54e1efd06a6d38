"""Test the check that each link in the built site has a target, and that pages load no remote file."""

import pytest

from docs.generate.links import complaints, main
from tests.unit.tables import every_row

PAGE = '<html><h1 id="top">x</h1>{}</html>'


@pytest.fixture
def site(tmp_path):
    def made(body, other=""):
        (tmp_path / "deep").mkdir(exist_ok=True)
        (tmp_path / "index.html").write_text(PAGE.format(body))
        (tmp_path / "deep" / "index.html").write_text(PAGE.format(other))
        (tmp_path / "a b.css").write_text("")
        return tmp_path

    return made


@every_row(
    "link",
    [
        "index.html",
        "#top",
        "#",
        "?q=1",
        "deep/",
        "deep/index.html#top",
        "/deep/",
        "a%20b.css",
        "https://example.org/x#y",
        "mailto:ada@example.org",
    ],
)
def test_links_that_lead_somewhere_are_right(site, link):
    assert list(complaints(site(f'<a href="{link}">x</a>'))) == []


@every_row(
    ("link", "wrong"),
    [
        ("none.html", "there is no such page or file"),
        ("deep/none/", "there is no such page or file"),
        ("#none", "there is no such anchor"),
        ("deep/#none", "there is no such anchor"),
    ],
)
def test_links_that_lead_nowhere_are_told(site, link, wrong):
    assert list(complaints(site(f'<a href="{link}">x</a>'))) == [f"index.html: {link}: {wrong}"]


def test_links_are_those_of_the_page_that_they_stand_on(site):
    assert list(complaints(site("", '<a href="../index.html#top">x</a><img src="x.png">'))) == [
        "deep/index.html: x.png: there is no such page or file"
    ]


@every_row(
    "element",
    [
        '<script src="https://example.org/x.js"></script>',
        '<link href="//example.org/x.css">',
        '<img src="http://example.org/x.png">',
    ],
)
def test_what_is_loaded_from_elsewhere_is_told(site, element):
    (line,) = complaints(site(element))
    assert line.endswith("is loaded from another server")


def test_what_a_page_brings_itself_is_not(site):
    assert list(complaints(site('<img src="data:image/png;base64,AAAA">'))) == []


def test_the_exit_code_says_whether_all_is_right(site, tmp_path_factory, capsys):
    wrong = site('<a href="none.html">x</a>')
    assert main(str(wrong)) == 1
    assert capsys.readouterr().out.endswith("2 pages, 1 wrong links\n")
    (wrong / "index.html").write_text(PAGE.format(""))
    assert main(str(wrong)) == 0
    assert main(str(tmp_path_factory.mktemp("empty"))) == 1
