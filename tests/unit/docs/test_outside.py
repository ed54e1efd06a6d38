"""Test that links to files outside ``docs`` become links to generated pages that show these files."""

import pytest

from docs.generate.outside import ROOT, linked, page_of, place, relinked

TEXT = (
    "[a](../slurm/x.toml), [b](../../slurm/x.toml#key), [c](../json.md), "
    "[d](launch.md), [e](../../docs/json.md)"
)


def test_files_that_are_not_in_docs_are_found():
    assert list(linked(TEXT, "howto/page.md")) == ["slurm/x.toml"]
    assert list(linked("[a](../slurm/x.toml)", "sites.md")) == ["slurm/x.toml"]


def test_links_to_them_lead_to_their_pages_and_others_stay():
    made = relinked(TEXT, "howto/page.md")
    assert "[b](../source/slurm/x.toml.md#key)" in made
    assert all(
        f"]({link})" in made for link in ("../slurm/x.toml", "../json.md", "launch.md", "../../docs/json.md")
    )
    assert relinked("[a](../slurm/x.toml)", "sites.md") == "[a](source/slurm/x.toml.md)"


def test_a_page_shows_the_file():
    text = page_of("slurm/sites/example.toml")
    assert text.startswith("# slurm/sites/example.toml\n\n````toml\n# A site profile")
    assert place("slurm/sites/example.toml") == "source/slurm/sites/example.toml.md"


def test_a_link_to_a_file_that_is_not_there_is_no_page():
    assert not (ROOT / "slurm/none.toml").exists()
    with pytest.raises(FileNotFoundError):
        page_of("slurm/none.toml")


def test_the_front_page_stands_for_the_readme():
    text = "[a](../../README.md#more)"
    assert list(linked(text, "courses/README.md")) == []
    assert relinked(text, "courses/README.md") == "[a](../index.md#more)"
