"""Programs of users: each runs right on two nodes with one command, or is refused before it is submitted."""

import pytest

from tests.services.jobs import last_record, launched
from tests.services.program import toolkit
from tests.services.programs import PROGRAMS


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_runs_or_is_refused_with_the_sentence_that_helps(name, on, tmp_path):
    attempt(name, on, tmp_path)


def attempt(name, on, tmp_path):
    program = PROGRAMS[name]
    folder = tmp_path / "work"
    for path, text in program.files.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("" if text.startswith("SIZE:") else text)
        if text.startswith("SIZE:"):
            with file.open("wb") as sparse:
                sparse.truncate(int(text.removeprefix("SIZE:")))
    before = toolkit("jobs", "list", "--json").stdout
    words = ("--nodes", str(program.nodes), "--no-preflight", *program.options, *program.words)
    done = launched(on, *words, ok=program.runs, cwd=folder)
    assert sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()) == sorted(
        program.files
    )
    if not program.runs:
        assert done.returncode in {1, 2}
        assert program.said in done.stderr
        assert toolkit("jobs", "list", "--json").stdout == before
        return
    assert program.said in done.stdout
    if program.wrote:
        assert "toolkit jobs fetch" in done.stderr
        toolkit("jobs", "fetch", last_record()["key"], program.wrote, "-o", str(tmp_path / "results"))
        assert (tmp_path / "results" / program.wrote).is_file()
