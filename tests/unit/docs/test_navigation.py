"""Test that the site's navigation shows the pages of a folder instead of the folder."""

from docs.generate.navigation import expanded

PAGES = ["index.md", "courses/b.md", "courses/README.md", "courses/a.md", "courses/deep/c.md"]


def test_a_folder_becomes_its_pages_with_the_index_first():
    assert expanded([{"Lessons": "courses/"}], PAGES) == [
        {"Lessons": ["courses/README.md", "courses/a.md", "courses/b.md"]}
    ]


def test_all_else_stays_also_within_sections():
    entries = [{"Home": "index.md"}, {"More": ["index.md", "courses/deep/", {"Last": "index.md"}]}]
    assert expanded(entries, PAGES) == [
        {"Home": "index.md"},
        {"More": ["index.md", "courses/deep/c.md", {"Last": "index.md"}]},
    ]


def test_a_page_that_is_not_there_is_left_out():
    entries = ["none.md", {"None": "none.md"}, {"More": ["index.md", "none.md"]}]
    assert expanded(entries, PAGES) == [{"More": ["index.md"]}]


def test_a_section_without_pages_is_left_out():
    assert expanded([{"Home": "index.md"}, {"None": "none/"}, {"No": ["no/"]}], PAGES) == [
        {"Home": "index.md"}
    ]
