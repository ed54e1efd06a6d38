"""Test the word check as a command: it reports words by file and line, and the baseline can only shrink."""

import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from tests.unit.tables import every_row, rows_of
from tests.words.__main__ import ROOT, main, tracked
from tests.words.baseline import BASELINE, counted, followed, read, shrunk, write
from tests.words.find import find, load

WORDS = load()


def lines(text: str, path: str = "docs/a.md") -> list[tuple[int, str]]:
    return [(one.line, one.word) for one in find(path, text, WORDS)]


@every_row(
    ("text", "word"),
    [
        ("Nobody told it.", "nobody"),
        ("whoever reads it", "whoever"),
        ("what a person types", "a person"),
        ("the engine is told of it", "is told"),
        ("a host that is waited for", "is waited for"),
        ("The launch was mended.", "mend"),
        ("what is foreseen", "foresee"),
        ("The two get on.", "get on"),
        ("it goes on with the next", "go on"),
        ("Tell whether it runs", "tell"),
        ("it ends with status 1", "end"),
        ("they agree in the end", "in the end"),
        ("held it up against the record", "hold against"),
        ("the file lies beside it", "lie"),
        ("what stands in it", "stand"),
        ("the image brings PMIx", "bring"),
        ("a lonely copy", "lonely"),
        ("the place is away", "away"),
        ("what broke off", "break off"),
        ("made anew", "anew"),
        ("it hangs for ever", "for ever"),
        ("what became of it", "become of"),
        ("how it came to be", "come to be"),
        ("they fail in silence", "without a word"),
        ("what it says of itself", "says of"),
        ("where there is none", "where there is"),
        ("it is no SIF file", "is no NOUN"),
        ("the version is that of the host", "that of"),
        ("the one that works", "the one"),
        ("a folder of its own", "of its own"),
        ("the door to Slurm", "door"),
        ("its papers", "papers"),
        ("parcels for the cluster", "cargo"),
        ("praise the plan", "praise"),
        ("kept in the book", "the book"),
    ],
)
def test_each_word_is_found(text: str, word: str):
    assert lines(text) == [(1, word)]


def test_every_row_of_the_data_has_an_example_above():
    shown = {row.values["word"] for row in rows_of(test_each_word_is_found)}
    assert shown == {word.word for word in WORDS.word}


@every_row(
    "text",
    [
        "There is no file, and it is no longer needed.",
        "Where is no network?",
        "the threshold of a stand-alone household",
        "Use `scontrol hold` or `mend`, and ``a person`` in code.",
        "Tell Slurm to end the job; the path ends with a slash; hold the job.",
        "It says that of two images one is newer.",
        "what is asked for",
        "Bring your own image",
        "docs/mend.md, mend.py and mend() are names",
        "papers by other authors; an indoor network",
    ],
)
def test_right_uses_are_not_found(text: str):
    assert lines(text) == []


def test_the_line_is_that_of_the_word_and_a_phrase_may_go_over_two():
    assert lines("one\n\ntwo mended\n\n```\nmended\n```\nit is\ntold\n") == [(3, "mend"), (8, "is told")]
    assert lines("it is\n\ntold") == []
    code = '"""First.\n\nSecond mended.\n"""\n\nX = 1  # it is\n# told\n'
    assert lines(code, "tests/a.py") == [(3, "mend"), (6, "is told")]
    message = "\n\nraise E(\n    'one two three '\n    f'{x} four mended'\n)\n"
    assert lines(message.replace("'", '"'), "toolkit/a.py") == [(5, "mend")]


def test_patterns_are_in_small_letters_as_the_text_that_they_are_used_on():
    for word in WORDS.word:
        for pattern in (word.pattern, *word.allow):
            assert not re.search(r"[A-Z]", re.sub(r"\\[A-Z]", "", pattern)), word.word
        assert ": " not in word.word
    assert len({word.word for word in WORDS.word}) == len(WORDS.word)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    (root / "docs").mkdir(parents=True)
    (root / "docs" / "a.md").write_text("It is mended.\nIt mends, anew.\n")
    (root / ".gitignore").write_text("ignored.md\n")
    (root / "ignored.md").write_text("mend\n")
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    (root / "baseline").write_text("docs/a.md: anew: 1\ndocs/a.md: mend: 2\n")
    return root


def check(root: Path, *words: str) -> int:
    return main(words, root=root, baseline=root / "baseline")


def test_what_is_in_the_baseline_passes_and_all_shows_it(project: Path, capsys: pytest.CaptureFixture[str]):
    assert check(project) == 0
    assert capsys.readouterr().out == ""
    assert check(project, "--all") == 1
    assert capsys.readouterr().out.splitlines() == [
        "docs/a.md:1: mended -> fix, repair (not the field's word)",
        "docs/a.md:2: anew -> again (not the field's word)",
        "docs/a.md:2: mends -> fix, repair (not the field's word)",
    ]


def test_growth_fails_with_file_line_word_and_replacement(project: Path, capsys: pytest.CaptureFixture[str]):
    (project / "new.md").write_text("\nNobody.\n")
    with (project / "docs" / "a.md").open("a") as page:
        page.write("Mend it.\n")
    assert check(project) == 1
    said = capsys.readouterr().out.splitlines()
    assert (
        said[2] == "docs/a.md:3: Mend -> fix, repair (not the field's word); baseline: 2 of these in the file"
    )
    assert said[3].startswith("new.md:2: Nobody -> name the actor")
    assert len(said) == 4
    assert check(project, str(project / "new.md")) == 1
    assert len(capsys.readouterr().out.splitlines()) == 1


def test_fewer_words_fail_until_the_baseline_is_shrunk(project: Path, capsys: pytest.CaptureFixture[str]):
    (project / "docs" / "a.md").write_text("It mends.\n")
    assert check(project) == 1
    said = capsys.readouterr().out
    assert "docs/a.md: mend: 1 instead of 2; run `python -m tests.words --shrink`" in said
    assert "docs/a.md: anew: 0 instead of 1" in said
    assert check(project, "--shrink") == 0
    assert (project / "baseline").read_text() == "docs/a.md: mend: 1\n"
    assert check(project) == 0


def test_to_shrink_never_raises_a_count(project: Path, capsys: pytest.CaptureFixture[str]):
    (project / "docs" / "a.md").write_text("mend mend mend\n")
    (project / "new.md").write_text("mend\n")
    assert check(project, "--shrink") == 1
    assert (project / "baseline").read_text() == "docs/a.md: mend: 2\n"
    assert "new.md:1: mend" in capsys.readouterr().out


def test_to_shrink_follows_a_file_that_was_moved(project: Path, capsys: pytest.CaptureFixture[str]):
    (project / "docs" / "a.md").rename(project / "a.md")
    (project / "b.md").write_text("mend\n")
    assert check(project, "--shrink") == 1
    assert (project / "baseline").read_text() == "a.md: anew: 1\na.md: mend: 2\n"
    assert capsys.readouterr().out.splitlines() == ["b.md:1: mend -> fix, repair (not the field's word)"]


def test_a_moved_file_is_followed_only_if_one_file_can_be_meant():
    base = Counter({("x/a.md", "mend"): 1})
    assert followed(base, ["y/a.md", "z/b.md"]) == {("y/a.md", "mend"): 1}
    assert followed(base, ["y/a.md", "z/a.md"]) == base
    assert followed(base, ["x/a.md", "y/a.md"]) == base
    assert followed(base + Counter({("w/a.md", "mend"): 1}), ["y/a.md"]) == base + Counter(
        {("w/a.md", "mend"): 1}
    )


def test_a_file_that_must_be_clean_may_have_no_baseline(project: Path, capsys: pytest.CaptureFixture[str]):
    (project / "README.md").write_text("mend\n")
    (project / "baseline").write_text("README.md: mend: 1\ndocs/a.md: anew: 1\ndocs/a.md: mend: 2\n")
    assert check(project) == 1
    assert capsys.readouterr().out == "README.md: mend: this file may have no entry in baseline.txt\n"


def test_a_generated_file_is_not_read():
    assert lines("mend", "docs/rules.md") == lines("# mend", "tests/golden/scripts/x.sh") == []


def test_ignored_files_are_not_read(project: Path):
    assert tracked(project) == [".gitignore", "baseline", "docs/a.md"]


def test_counts_are_written_sorted_and_read_again(tmp_path: Path):
    counts = Counter({("b.md", "mend"): 1, ("a.md", "that of"): 2, ("a.md", "mend"): 0})
    path = tmp_path / "baseline.txt"
    write(counts, path)
    assert path.read_text() == "a.md: that of: 2\nb.md: mend: 1\n"
    assert read(path) == +counts
    assert shrunk(read(path), Counter({("b.md", "mend"): 5})) == {("b.md", "mend"): 1}
    assert counted([]) == {}


def test_the_baseline_of_the_project_is_sorted_and_names_files_that_exist():
    base = read(BASELINE)
    text = BASELINE.read_text()
    assert all((ROOT / name).is_file() for name, _ in base)
    assert text.splitlines() == [f"{name}: {word}: {n}" for (name, word), n in sorted(base.items())]
    assert not {name for name, _ in base} & set(WORDS.clean)
