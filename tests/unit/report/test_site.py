"""Test the page of a site and the list of sites for terminals of several widths."""

from tests.unit.tables import every_row
from toolkit.knowledge import sites
from toolkit.report.site import page, profile_table

NAMES = sites.names()


@every_row("name", NAMES)
def test_a_page_fits_a_terminal_and_says_the_same_as_in_a_pipe(name):
    site = sites.site(name)
    whole = list(page(name, "FILE", site))
    narrow = list(page(name, "FILE", site, 60))
    assert all(len(line) <= 60 or len(line.split()) <= 2 for line in narrow)
    assert set(" ".join(narrow).replace("-", "").split()) >= {
        word for line in whole for word in line.replace("-", "").split()
    }


def test_notes_that_fit_stay_as_they_were_written():
    site = sites.site("cori-knl")
    assert list(page("cori-knl", "FILE", site, 200)) == list(page("cori-knl", "FILE", site))


def test_the_list_fits_a_terminal():
    found = {name: sites.site(name) for name in NAMES}
    assert max(map(len, profile_table(found, ()).splitlines())) > 80
    for width in (80, 40):
        assert max(map(len, profile_table(found, (), width).splitlines())) <= width
