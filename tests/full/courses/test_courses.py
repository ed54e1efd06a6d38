"""Test every command of every lesson on a real cluster: it must exit and print as the page shows."""

import pytest

from tests.courses import run as courses
from tests.services.program import ROOT

PAGES = sorted((ROOT / "docs" / "courses").glob("*.md"))


@pytest.fixture(scope="module")
def room(training_sif):
    with courses.classroom() as name:
        yield name


@pytest.mark.parametrize("page", PAGES, ids=[page.stem for page in PAGES])
def test_a_lesson_prints_what_its_page_shows(page, room):
    text = page.read_text()
    with courses.desk(text) as desk:
        result = courses.run(text, page.name, desk)
    assert result.seconds, "the page has no command"
    wrong = [*result.unlike, *result.wrong]
    assert not wrong, "\n".join(wrong)
