"""Test the parsing of a lesson, and how new output is written into it."""

import pytest

from tests.courses.page import Command, File, Keep, WrongPage, steps, written
from tests.unit.tables import every_row

PAGE = """# A lesson

```python title="net.py"
print("```")
x = 1
```

Then:

```console
$ toolkit launch net.py \\
    --nodes 2
one
two
$ false  # ends with 1
```

<!-- keep: studies/a.svg as images/a.svg -->

```text
$ nothing that is run
```

??? question "Why?"

    ```console
    $ echo three
    three
    ```
"""


def test_a_page_is_a_list_of_files_commands_and_what_is_kept():
    file, launch, failing, keep, echo = steps(PAGE)
    assert file == File(3, "net.py", 'print("```")\nx = 1\n')
    assert (launch.line, launch.text) == (11, "toolkit launch net.py \\\n    --nodes 2")
    assert (launch.shown, launch.status) == (("one", "two"), 0)
    assert (failing.shown, failing.status) == ((), 1)
    assert keep == Keep(18, "studies/a.svg", "images/a.svg")
    assert (echo.text, echo.shown, echo.indent) == ("echo three", ("three",), "    ")


def test_new_output_takes_the_place_of_the_shown_one_and_nothing_else_changes():
    commands = [step for step in steps(PAGE) if isinstance(step, Command)]
    new = written(PAGE, [(commands[0], ["1", "", "3"]), (commands[1], ["no"]), (commands[2], ["four"])])
    was = [(c, list(c.shown)) for c in steps(new) if isinstance(c, Command)]
    assert [shown for _, shown in was] == [["1", "", "3"], ["no"], ["four"]]
    assert "    four\n    ```\n" in new
    back = [(c, list(old.shown)) for (c, _), old in zip(was, commands, strict=True)]
    assert written(new, back) == PAGE


def test_written_with_what_it_shows_a_page_is_the_same():
    same = [(step, list(step.shown)) for step in steps(PAGE) if isinstance(step, Command)]
    assert written(PAGE, same) == PAGE


@every_row(
    ("text", "said"),
    [
        ("\n```console\n$ true\n", "p.md:2: the block has no end"),
        ("```console\nouput\n$ true\n```\n", "p.md:2: output before the first command"),
        ('```python title="../x.py"\n```\n', "p.md:1: ../x.py is outside"),
        ('```python title="/etc/x"\n```\n', "p.md:1: /etc/x is outside"),
        ("<!-- keep: a as ~/b -->\n", "p.md:1: ~/b is outside"),
    ],
)
def test_a_page_that_cannot_be_run_is_told_with_its_line(text, said):
    with pytest.raises(WrongPage) as told:
        steps(text, "p.md")
    assert str(told.value).startswith(said)
