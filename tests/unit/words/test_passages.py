"""Test which text the word check reads in each kind of file, and the text's line."""

import ast
import io
import tokenize
from pathlib import Path

from tests.unit.tables import every_row
from tests.words.literals import python, toml
from tests.words.passages import is_message, passages

ROOT = Path(__file__).parents[3]
FIELDS = ("title", "why")


def read(path: str, source: str) -> list[tuple[int, str]]:
    found = [(passage.line, " ".join(passage.text.split())) for passage in passages(path, source, FIELDS)]
    return [(line, text) for line, text in found if text]


def test_markdown_is_read_without_code_addresses_tags_and_comments():
    page = """# A title

Some `inline words` and ``more `of` it``, [a link](https://h.example/mend.html "x") <b>bold</b>.
<!-- a comment -->

```console
$ fenced words
```

- item
  ~~~
  nested words
  ~~~
after
[ref]: docs/mend.md
"""
    ((line, text),) = read("docs/a.md", page)
    assert line == 1
    for gone in ("inline", "of`", "mend", "<b>", "comment", "fenced", "nested", "console"):
        assert gone not in text
    for kept in ("A title", "Some", "a link", "bold", "item", "after"):
        assert kept in text


def test_the_text_of_a_page_keeps_its_lines():
    page = "one\n\n```\ntwo\n```\n`three\nfour`\nfive\n<!-- a\nb -->\nsix\n"
    (passage,) = passages("a.md", page, FIELDS)
    lines = passage.text.splitlines()
    assert [number for number, line in enumerate(lines, 1) if line.strip(" X")] == [1, 8, 11]
    assert lines[7] == "five"


def test_blocks_that_are_indented_are_code_but_not_in_lists_and_notes():
    page = """Text:

    code one

    code two
goes on

- item
  lazy

    of the item

After it:

    code three

!!! note

    in the note
"""
    ((_, text),) = read("docs/a.md", page)
    assert text == "Text: goes on - item lazy of the item After it: !!! note in the note"
    (passage,) = passages("docs/a.md", page, FIELDS)
    assert passage.text.splitlines()[15:18] == ["", "!!! note", ""]


MODULE = '''"""The module, `with code` in it."""

import re  # a comment of
# two lines

X = re.compile(r"a pattern of many words")
"""An attribute, over
two lines."""
Y = "two words"


def f(a: str = "default words of three"):
    """A function."""
    raise ValueError(
        f"the message {a} has {a!r:>{len(a)}} fields"
        " and goes over lines", "another one of these"
    )
'''


def test_docstrings_comments_and_messages_of_the_package_are_read():
    assert read("toolkit/a.py", MODULE) == [
        (1, "The module, XXXXXXXXXXX in it."),
        (3, "a comment of two lines"),
        (7, "An attribute, over two lines."),
        (12, "default words of three"),
        (13, "A function."),
        (15, "the message XXX has XXXXXXXXXXXXXXX fields and goes over lines"),
        (16, "another one of these"),
    ]


def test_strings_of_other_code_are_not_read():
    lines = [line for line, _ in read("tests/a.py", MODULE)]
    assert lines == [1, 3, 7, 13]


@every_row(
    ("text", "read"),
    [
        ("no such file", True),
        ("the image has no `mpirun`; use another mode", True),
        ("two words", False),
        ("--mpi=pmix -n 2", False),
        ("a_name", False),
        ("", False),
    ],
)
def test_a_message_has_three_words(text: str, read: bool):
    assert is_message(text) is read


@every_row(
    "name",
    ["tests/words/literals.py", "tests/matrix/said.py", "toolkit/errors.py", "toolkit/report/safe_stream.py"],
)
def test_docstrings_and_comments_are_those_that_python_sees(name: str):
    source = (ROOT / name).read_text()
    starts = [source.count("\n", 0, start) + 1 for start, _ in python(source, lambda text: False)]
    strings = {
        node.lineno
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    }
    comments = {
        token.start[0]
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type == tokenize.COMMENT
    }
    assert strings <= set(starts)
    assert set(starts) <= strings | comments
    text = "\n".join(text for _, text in python(source, lambda text: False))
    for line in comments:
        words = source.splitlines()[line - 1].rpartition("# ")[2]
        assert words in text


def test_comments_and_shown_values_of_toml_are_read():
    text = """# a comment
[[signature]] # beside
id = "not shown"
title = "a title"
why = '''
over
lines'''
rows = [ { why = "inside", sample = "no # comment" } ]
"""
    assert read("recipes/a.toml", text) == [
        (1, "a comment"),
        (2, "beside"),
        (4, "a title"),
        (5, "over lines"),
        (8, "inside"),
    ]


def test_every_shown_value_of_the_signatures_is_read():
    import tomllib

    path = ROOT / "recipes" / "knowledge" / "signatures.toml"
    rows = tomllib.loads(path.read_text())["signature"]
    texts = [text for _, text in toml(path.read_text(), ["title"])]
    assert [row["title"] for row in rows] == [
        text for text in texts if text in {row["title"] for row in rows}
    ]


@every_row(
    "name", ["scripts/a.sh", "Makefile", "containers/Dockerfile", "slurm/job.sh.j2", "mkdocs.yml", ".ci/run"]
)
def test_lines_that_are_comments_are_read_of_shell_and_its_like(name: str):
    text = "#!/bin/bash\n#SBATCH --nodes=2\n# first\n  # second\necho '# no comment'\n\n# third\n"
    assert read(name, text) == [(3, "first second"), (7, "third")]


def test_an_issue_template_is_read_with_its_values():
    ((line, text),) = read(".github/ISSUE_TEMPLATE/fault.yml", "name: Report\ndescription: what `broke`\n")
    assert (line, text) == (1, "name: Report description: what XXXXXXX")


def test_a_commit_template_is_read_whole_and_data_is_not():
    assert read(".gitmessage", "area: imperative\n") == [(1, "area: imperative")]
    assert read("tests/a.json", '{"a": "three words here"}') == []
    assert read("tests/evidence/a.txt", "# three words here") == []
