from toolkit.report.table import table


def test_columns_line_up_and_numbers_stand_right():
    text = table(("name", "n"), [("a", 1), ("long", 22)])
    assert text.splitlines() == ["name   n", "----  --", "a      1", "long  22"]


def test_an_empty_table_has_its_titles():
    assert table(("name",), []).splitlines() == ["name", "----"]


ROWS = [("mnist", 55, "handwritten digits, to train on"), ("cifar10", 184, "photographs")]
TITLES = ("name", "MB", "what it is")


def test_a_table_that_fits_is_as_it_is_without_a_width():
    assert table(TITLES, ROWS, 80) == table(TITLES, ROWS)


def test_the_last_column_is_wrapped_to_the_width():
    assert table(TITLES, ROWS, 36).splitlines() == [
        "name      MB  what it is",
        "-------  ---  ----------------------",
        "mnist     55  handwritten digits, to",
        "              train on",
        "cifar10  184  photographs",
    ]


def test_what_has_no_room_beside_the_others_stands_below_them():
    assert table(TITLES, ROWS, 24).splitlines() == [
        "name      MB",
        "    what it is",
        "-------  ---",
        "mnist     55",
        "    handwritten digits,",
        "    to train on",
        "cifar10  184",
        "    photographs",
    ]
    assert table(("name", "where", "what"), [("a" * 12, "b" * 12, "c")], 20).splitlines()[-2:] == [
        "a" * 12,
        f"    {'b' * 12}  c",
    ]
