"""Test the documentation site in a browser: errors, links, search, and dark colours."""

import subprocess
import sys

import pytest

from docs.generate.links import complaints
from docs.generate.outside import ROOT
from tests.full.package.browser import opened

WIDTHS = [1400, 420]
PAGES = [
    "index.html",
    "howto/index.html",
    "howto/own-script.html",
    "reference/findings/index.html",
    "reference/findings/apt-key.html",
    "explanation/how-we-know.html",
    "matrix.html",
]
QUERIES = [
    ("PyTorch", "howto/pytorch.html"),
    ("own script", "howto/own-script.html"),
    ("GPU", "howto/gpu-cluster.html"),
    ("time limit", "survive.html"),
    ("notebook", "notebook.html"),
    ("image-lacks-pmi2", "reference/findings/image-lacks-pmi2.html"),
]
"""Search words, each with a page that must be among the first three results."""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    words = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    subprocess.run(words, cwd=ROOT, check=True)
    return folder


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with opened(tmp_path_factory.mktemp("profile")) as found:
        yield found


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("page", PAGES)
def test_a_page_has_no_error_and_does_not_scroll_sideways(site, browser, page, width):
    browser.errors.clear()
    browser.open((site / page).as_uri(), width)
    assert browser.errors == []
    assert browser.evaluate("document.documentElement.scrollWidth") <= width


def test_every_link_of_the_site_leads_somewhere(site):
    assert list(complaints(site)) == []


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize(("query", "page"), QUERIES)
def test_the_search_finds(site, browser, width, query, page):
    browser.open((site / "index.html").as_uri(), width)
    browser.evaluate("document.querySelector('#__search').click()")
    browser.evaluate("document.querySelector('[name=query]').focus()")
    browser.evaluate(
        f"{{const q = document.querySelector('[name=query]'); q.value = {query!r};"
        " q.dispatchEvent(new KeyboardEvent('keyup', {bubbles: true}))}"
    )
    browser.wait("document.querySelector('.md-search-result__link') !== null")
    found = browser.evaluate(
        "[...document.querySelectorAll('.md-search-result__item > .md-search-result__link')].map(a => a.href)"
    )
    assert any(page in link for link in found[:3]), found[:5]


@pytest.mark.parametrize("width", WIDTHS)
def test_the_matrix_shows_the_launches_of_one_mpi(site, browser, width):
    shown = "[...document.querySelectorAll('tbody tr')].filter(row => !row.hidden).length"
    browser.open((site / "matrix.html").as_uri(), width)
    before = browser.evaluate(shown)
    browser.evaluate(
        "{const s = document.querySelector('.outcomes-filter select'); s.value = 'MPICH';"
        " s.dispatchEvent(new Event('change'))}"
    )
    assert 0 < browser.evaluate(shown) < before
    cells = "[...document.querySelectorAll('tbody tr:not([hidden]) td:nth-child(2)')].map(td => td.innerText)"
    assert not any(text.startswith("Open MPI") for text in browser.evaluate(cells))


@pytest.mark.parametrize("width", WIDTHS)
def test_the_switch_chooses_dark_colours_and_the_next_page_keeps_them(site, browser, width):
    scheme = "document.body.getAttribute('data-md-color-scheme')"
    browser.open((site / "index.html").as_uri(), width)
    browser.evaluate("document.querySelectorAll('input[name=__palette]')[2].click()")
    browser.wait(f"{scheme} === 'slate'")
    browser.open((site / "install.html").as_uri(), width)
    assert browser.evaluate(scheme) == "slate"
    browser.evaluate("document.querySelectorAll('input[name=__palette]')[1].click()")
    browser.wait(f"{scheme} === 'default'")


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    folder = tmp_path_factory.mktemp("study")
    data = ROOT / "tests" / "unit" / "study" / "data" / "bsc"
    words = [sys.executable, "-m", "toolkit", "report", str(data), "-o", str(folder)]
    subprocess.run(words, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    return folder / "index.html"


@pytest.mark.parametrize("width", WIDTHS)
def test_the_page_of_a_study_fits_and_follows_the_colours_of_the_reader(study, browser, width):
    ground = "getComputedStyle(document.body).backgroundColor"
    browser.errors.clear()
    browser.prefer("light")
    browser.open(study.as_uri(), width)
    assert browser.errors == []
    assert browser.evaluate("document.documentElement.scrollWidth") <= width
    assert browser.evaluate("document.querySelectorAll('figure svg').length") == 3
    assert browser.evaluate(ground) == "rgb(255, 255, 255)"
    browser.prefer("dark")
    assert browser.evaluate(ground) == "rgb(22, 25, 29)"
    browser.prefer("light")
