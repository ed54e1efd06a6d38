"""Test the hooks of MkDocs: pages made from the code, their navigation, and links inside the site."""

import pytest
from mkdocs.config import load_config
from mkdocs.structure.files import get_files
from mkdocs.structure.pages import Page

from docs.generate.hooks import guides
from docs.generate.outside import ROOT
from tests.unit.tables import every_row

_LINK = "[a](../slurm/sites/example.toml)"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    (folder / "docs").mkdir()
    for name in ("index.md", "rules.md"):
        (folder / "docs" / name).write_text(_LINK)
    hooks = ROOT / "docs" / "generate" / "hooks.py"
    (folder / "mkdocs.yml").write_text(f"site_name: x\nhooks: [{hooks}]\n")
    made = load_config(str(folder / "mkdocs.yml"))
    made.nav = [{"Home": "index.md"}, {"Commands": "reference/cli/"}]
    return made, made.plugins.run_event("files", get_files(made), config=made)


@pytest.fixture
def config(site):
    return site[0]


@pytest.fixture
def files(site):
    return site[1]


def test_the_reference_is_added(files):
    for page in (
        "reference/findings/pmix-refused.md",
        "reference/schemas/toolkit.job-1.schema.json",
        "source/slurm/sites/example.toml.md",
        "matrix.md",
    ):
        assert files.get_file_from_path(page).content_string


def test_the_site_has_the_pages_of_today_in_place_of_the_committed_ones(files):
    assert "\n## slurm-lacks-pmix\n" in files.get_file_from_path("rules.md").content_string


def test_the_navigation_names_what_was_added(config, files):
    assert files
    home, commands = config.nav
    assert home == {"Home": "index.md"}
    assert commands["Commands"][0] == "reference/cli/index.md"
    assert "reference/cli/doctor.md" in commands["Commands"]


@every_row(("uri", "meta"), [("rules.md", {"search": {"exclude": True}}), ("index.md", {})])
def test_links_are_led_to_pages_and_what_is_there_twice_is_found_once(config, files, uri, meta):
    page = Page(None, files.get_file_from_path(uri), config)
    text = config.plugins.run_event("page_markdown", _LINK, page=page, config=config, files=files)
    assert text == "[a](source/slurm/sites/example.toml.md)"
    assert page.meta == meta


def test_the_search_shows_guides_before_findings(config, files, monkeypatch):
    tabs = [{"Start": ["index.md"]}, {"How-to": [{"Run": "howto/a.md"}]}, {"Reference": "b.md"}]
    monkeypatch.setitem(config, "nav", tabs)
    assert guides(config.nav) == {"index.md", "howto/a.md"}
    ranks = []
    for uri in ("index.md", "reference/cli/doctor.md", "reference/findings/pmix-refused.md"):
        page = Page(None, files.get_file_from_path(uri), config)
        config.plugins.run_event("page_markdown", "", page=page, config=config, files=files)
        ranks.append(page.meta.get("search", {}).get("boost", 1))
    assert ranks == sorted(ranks, reverse=True)
    assert len(set(ranks)) == 3
