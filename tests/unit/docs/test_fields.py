"""Test the reference of file fields: the name, type, default and meaning of each field."""

import re
from typing import Literal

import msgspec

from docs.generate.fields import Field, fields, texts
from docs.generate.files import pages
from tests.unit.tables import every_row
from toolkit.model.fix import Fix
from toolkit.model.jobfile import JobFile
from toolkit.model.recipe import Recipe
from toolkit.model.site import Site


class Inner(msgspec.Struct, frozen=True):
    """What is inside."""

    kind: Literal["one", "two"] = "two"


class Outer(msgspec.Struct, frozen=True):
    """A thing. ``many`` are counted, as :class:`a.b.Inner` says. Others are not."""

    name: str
    """What it is
    called."""
    many: tuple[int, ...] = (1, 2)
    inner: Inner = Inner()
    on: bool | None = None


def test_fields_tell_type_default_and_meaning():
    assert list(fields(Outer, {"on": "Whether."})) == [
        Field("name", "text", "required", "What it is called."),
        Field("many", "list of: number", "`[1,2]`", "`many` are counted, as `Inner` says."),
        Field("inner", "table", "", "What is inside."),
        Field("inner.kind", "`one`, `two`", '`"two"`', ""),
        Field("on", "`true` or `false`", "", "Whether."),
    ]


def test_what_a_struct_does_not_tell_of_a_field_is_left_out():
    assert texts(Outer) == {"name": "What it is called.", "many": "`many` are counted, as `Inner` says."}


@every_row(("name", "struct"), [("recipe", Recipe), ("site", Site), ("job", JobFile), ("fix", Fix)])
def test_the_page_of_a_file_has_every_field(name, struct):
    page = pages()[f"reference/files/{name}.md"]
    for field in struct.__struct_fields__:
        assert f"| `{field}` |" in page
    assert not re.findall(r"^\| (`[\w.]+`) \|.*\|  \|$", page, re.MULTILINE), "a field without a meaning"


def test_meanings_come_from_the_example_of_a_site_and_from_the_options_of_a_launch():
    made = pages()
    site, job = made["reference/files/site.md"], made["reference/files/job.md"]
    assert "| `network` | text |  | The network interface for sockets of NCCL and Gloo. |" in site
    assert "| `defaults.qos` | text |  | Quality of service |" in site
    assert "| `gpus` | table |  | How a job requests GPUs. |" in site
    assert "| `time` | text | `01:00:00` | Time limit in the format of sbatch |" in job
