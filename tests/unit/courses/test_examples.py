"""Test that the table of examples has a row for every example in README and the guides."""

from tests.courses.examples import PAGES, ROOT, PageExample, examples, rows

ALL = [example for page in PAGES for example in examples(page)]


def test_each_row_is_for_an_example_that_a_page_has():
    used = [example.row for example in ALL]
    assert [row for row in rows() if row not in used] == []


def test_most_examples_run_as_shown():
    run = [example for example in ALL if example.row.how == "run"]
    assert len(run) > 30
    assert {example.row.how for example in ALL} == {"run", "dry-run", "parse"}
    assert all(row.why for row in rows())


def test_an_example_is_typed_at_the_cluster_of_the_desk():
    page = ROOT / "README.md"
    far = PageExample(page, "toolkit doctor my.sif --host USER@LOGIN --live")
    assert far.typed("c") == "toolkit doctor my.sif --cluster c --live"
    here = PageExample(page, "toolkit launch --image a.sif -- python x.py --host y")
    assert here.typed("c") == "toolkit launch --cluster c --image a.sif -- python x.py --host y"
    assert PageExample(page, "toolkit jobs fetch").typed("c") == "toolkit jobs fetch"
    assert PageExample(page, "toolkit doctor a.sif --facts f").typed("c") == "toolkit doctor a.sif --facts f"


def test_comments_and_continued_lines_are_read(tmp_path):
    page = tmp_path / "p.md"
    page.write_text(
        "Use:\n\n    toolkit jobs    # why\n    toolkit scale \\\n        mnist\n    toolkit x …\n"
    )
    assert [example.text for example in examples(page)] == ["toolkit jobs", "toolkit scale mnist"]
