"""The documentation site in a browser: pages without errors, the search, and the switch to dark colours."""

import subprocess
import sys

import pytest

from docs.generate.outside import ROOT
from tests.full.package.browser import opened

WIDTHS = [1400, 420]
PAGES = ["index.html", "howto/index.html", "reference/findings/apt-key.html", "matrix.html"]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Build the site into a folder."""
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


@pytest.mark.parametrize("width", WIDTHS)
def test_the_search_finds_how_to_pages(site, browser, width):
    browser.open((site / "index.html").as_uri(), width)
    browser.evaluate("document.querySelector('#__search').click()")
    browser.evaluate("document.querySelector('[name=query]').focus()")
    browser.evaluate(
        "{const q = document.querySelector('[name=query]'); q.value = 'PyTorch';"
        " q.dispatchEvent(new KeyboardEvent('keyup', {bubbles: true}))}"
    )
    browser.wait("document.querySelector('.md-search-result__link') !== null")
    found = browser.evaluate("[...document.querySelectorAll('.md-search-result__link')].map(a => a.href)")
    assert any("howto/pytorch.html" in link for link in found[:3]), found[:5]


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
