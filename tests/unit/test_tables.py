"""Test that a table test reports every row that fails."""

import pytest

from tests.unit.tables import WALKS, Table, check_all, every_row, rows_of, walk

NUMBERS = range(1, 200)


@pytest.fixture(autouse=True)
def _as_written(monkeypatch):
    """Let table tests check all rows in order, whatever the options of the test run are."""
    monkeypatch.setattr(WALKS, "only", "")
    monkeypatch.setattr(WALKS, "seed", None)


def failure(test, **fixtures):
    with pytest.raises(AssertionError) as caught:
        test(**fixtures)
    return str(caught.value)


def test_one_wrong_row_among_many_is_reported_by_its_name():
    @every_row("number", NUMBERS, ids=lambda number: f"row-{number}")
    def check(number):
        assert number != 117, f"{number} is wrong"

    head, row = failure(check).splitlines()
    assert head == "1 of 199 rows of check failed:"
    assert row.split("  ")[1:3] == [
        "row-117",
        f"test_tables.py:{check.__wrapped__.__code__.co_firstlineno + 2}",
    ]
    assert "117 is wrong" in row


def test_an_exception_in_a_row_does_not_hide_the_other_rows():
    seen = []

    @every_row("number", NUMBERS)
    def check(number):
        seen.append(number)
        if number == 3:
            raise KeyError("absent")
        if number == 5:
            raise SystemExit(2)
        if number == 7:
            pytest.fail("chosen to fail")
        if number == 9:
            pytest.skip("not checked")
        assert number != 150

    lines = failure(check).splitlines()
    assert sorted(seen) == list(NUMBERS)
    assert [line.split()[0] for line in lines[1:]] == ["3", "5", "7", "9", "150"]
    for line, reason in zip(lines[1:], ("KeyError", "SystemExit", "chosen", "not checked", ""), strict=True):
        assert reason in line


def test_the_first_failure_is_the_cause_of_the_error():
    @every_row("number", NUMBERS)
    def check(number):
        if number in {3, 5}:
            raise KeyError(number)

    with pytest.raises(AssertionError) as caught:
        check()
    assert isinstance(caught.value.__cause__, KeyError)
    assert caught.value.__cause__.args == (3,)


def test_a_right_table_calls_the_check_with_every_row_once():
    seen = []

    @every_row("left", "ab")
    @every_row(("right", "more"), [(1, 2), (3, 4)])
    def check(left, right, more):
        seen.append((left, right, more))

    check()
    assert sorted(seen) == [("a", 1, 2), ("a", 3, 4), ("b", 1, 2), ("b", 3, 4)]
    assert len(rows_of(check)) == 4


def test_a_right_table_in_a_test_calls_the_check_with_every_value_once():
    seen = []

    def check(value):
        seen.append(value)

    assert check_all(check, NUMBERS) == len(seen) == len(NUMBERS)


def test_rows_of_one_name_are_numbered():
    @every_row("text", ["a", "b", "a"])
    def check(text):
        assert text != "a"

    assert [line.split()[0] for line in failure(check).splitlines()[1:]] == ["a", "a#2"]


def test_a_table_without_rows_is_refused():
    with pytest.raises(ValueError, match="no rows"):
        every_row("number", [])
    with pytest.raises(ValueError, match="no rows"):
        check_all(lambda row: None, [])
    with pytest.raises(ValueError, match="no rows"):
        walk(Table(failure, ()), None)


def test_names_of_rows_are_those_that_are_given():
    @every_row("number", [1, 2], ids={"first": 1, "second": 2})
    def check(number):
        assert number == 3

    assert [line.split()[0] for line in failure(check).splitlines()[1:]] == ["first", "second"]
    with pytest.raises(ValueError, match="shorter"):
        every_row("number", [1, 2], ids=["first"])


def test_a_row_that_lacks_a_value_is_refused():
    with pytest.raises(ValueError, match="row 1 has 1 values"):
        every_row("left, right", [(1, 2), (3,)])


@every_row("number", range(3))
def test_each_row_has_a_folder_and_an_environment_of_its_own(tmp_path, monkeypatch, number):
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "file").touch()
    with pytest.raises(AttributeError):
        NUMBERS.made  # noqa: B018
    monkeypatch.setattr("tests.unit.test_tables.NUMBERS", type("Made", (), {"made": number}))


@pytest.fixture
def made(tmp_path):
    file = tmp_path / "made"
    file.write_text("new")
    OPEN.append(file)
    yield file
    OPEN.remove(file)


OPEN = []


@every_row("number", range(3))
def test_each_row_has_its_own_fixtures_and_finishes_them(made, tmp_path, number):
    assert [made] == OPEN
    assert made.parent == tmp_path
    assert made.read_text() == "new"
    made.write_text(str(number))


def test_rows_are_chosen_by_their_names_and_shuffled_by_a_seed(monkeypatch):
    seen = []

    @every_row("number", NUMBERS)
    def check(number):
        seen.append(number)

    monkeypatch.setattr(WALKS, "only", "19")
    check()
    assert sorted(seen) == [19, 119, *range(190, 200)]
    monkeypatch.setattr(WALKS, "only", "no such row")
    with pytest.raises(pytest.skip.Exception, match="no row"):
        check()
    seen.clear()
    monkeypatch.setattr(WALKS, "only", "")
    monkeypatch.setattr(WALKS, "seed", 3)
    check()
    assert seen != list(NUMBERS)
    assert sorted(seen) == list(NUMBERS)
