"""Test that toolkit finds the line of a field in a TOML file."""

from tests.unit.tables import every_row
from toolkit.knowledge.lines import line_of

TEXT = """\
schema = "x"
# version = "in a comment"
"quoted" = 1

[mpi]  # the library
version = "4"
nested.deep = 1

[[base]]
name = "a"
[ a . b ]
c = [1,
  2]
"""


@every_row(
    ("path", "line"),
    [
        ("schema", 1),
        ("quoted", 3),
        ("mpi", 5),
        ("mpi.version", 6),
        ("mpi.nested.deep", 7),
        ("base[0].name", 10),
        ("a.b.c[1]", 12),
    ],
)
def test_a_field_is_found(path, line):
    assert line_of(TEXT, path) == line


def test_a_field_that_is_not_there_leads_to_its_table():
    assert line_of(TEXT, "mpi.implementation") == 5


def test_nothing_at_all_leads_to_the_first_line():
    assert line_of(TEXT, "horovod.version") == 1
    assert line_of("", "") == 1
