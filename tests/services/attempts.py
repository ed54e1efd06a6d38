"""Launch a program of a user, and compare what becomes visible with what is expected."""

import json

from tests.services.jobs import last_record, launched
from tests.services.program import toolkit
from tests.services.programs import PROGRAMS


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
    before = _keys()
    words = ("--nodes", str(program.nodes), "--no-preflight", *program.options, *program.words)
    done = launched(on, *words, ok=program.runs, cwd=folder)
    assert sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()) == sorted(
        program.files
    )
    if not program.runs:
        assert done.returncode in {1, 2}
        assert program.said in done.stderr
        assert _keys() == before
        return
    assert program.said in done.stdout
    if program.wrote:
        assert "toolkit jobs fetch" in done.stderr
        toolkit("jobs", "fetch", last_record()["key"], program.wrote, "-o", str(tmp_path / "results"))
        assert (tmp_path / "results" / program.wrote).is_file()


def _keys():
    return [job["key"] for job in json.loads(toolkit("jobs", "list", "--json").stdout)["jobs"]]
