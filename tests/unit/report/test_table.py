from toolkit.report.table import table


def test_columns_line_up_and_numbers_stand_right():
    text = table(("name", "n"), [("a", 1), ("long", 22)])
    assert text.splitlines() == ["name   n", "----  --", "a      1", "long  22"]


def test_an_empty_table_has_its_titles():
    assert table(("name",), []).splitlines() == ["name", "----"]
