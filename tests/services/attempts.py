"""Launch a user's program on the virtual cluster, and compare the result with the expected result."""

import base64
import io
import json
import posixpath
import re
import shlex
import tarfile

from tests.services.jobs import last_record, launched, on_login
from tests.services.program import toolkit
from tests.services.programs import PROGRAMS

_COPIED = {".env"}
"""Files that ``toolkit launch`` does not copy to a cluster; ``toolkit doctor`` does not report them."""
_JOBS = "$(ls ~/.local/state/toolkit/jobs 2> /dev/null | wc -l)"


def attempt(name, on, tmp_path):
    """Launch a program from this machine; check the result, and that the program's folder does not change."""
    program = PROGRAMS[name]
    folder = _write(program, tmp_path / "work")
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


def judge(name, image, facts, folder):
    """Check that the doctor predicts that a program runs, or names the fault for which launch refuses it."""
    program, words = PROGRAMS[name], command_of(name)
    shape = ("--facts", str(facts), "--nodes", str(program.nodes))
    done = toolkit("doctor", str(image), *shape, "--", *words, ok=False, cwd=_write(program, folder))
    assert done.returncode == (0 if program.runs else 1), done.stdout
    if not program.runs:
        assert program.said.casefold() in " ".join(done.stdout.split()).casefold()


def command_of(name):
    """Return the words that start a program's ranks, or nothing if the doctor needs more than these words."""
    program = PROGRAMS[name]
    script, *rest = program.words
    if script == "--":
        words = rest
    elif script.endswith(".py") and rest[:1] in ([], ["--"]):
        words = ["python", script, *rest[1:]]
    else:
        return ()
    return () if program.options or program.travelling or _COPIED & set(program.files) else tuple(words)


def _write(program, folder):
    folder.mkdir()
    for path, text in program.files.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"" if text.startswith("SIZE:") else _encoded(text))
        file.chmod(_mode(text))
        if text.startswith("SIZE:"):
            with file.open("wb") as sparse:
                sparse.truncate(int(text.removeprefix("SIZE:")))
    return folder


def attempt_on_login(name, cluster, image):
    """Write a program's folder on the login node, and launch the program there.

    ``image`` is the path of the SIF file on the login node.
    """
    program = PROGRAMS[name]
    runs = program.runs or program.travelling
    folder = f"/work/{cluster.user}/journeys/{re.sub(r'[^a-z0-9]+', '-', name.lower())}"
    words = ["toolkit", "launch", "--image", image, "--nodes", str(program.nodes), "--no-preflight"]
    line = shlex.join([*words, *program.options, *program.words])
    sizes = [
        f"truncate -s {text.removeprefix('SIZE:')} {shlex.quote(path)}"
        for path, text in program.files.items()
        if text.startswith("SIZE:")
    ]
    written = f"{{ [ -e {folder}/{program.wrote} ] || ls -d ~+/../../toolkit/runs/*/{program.wrote}; }}"
    script = [
        f"rm -rf {folder} && mkdir -p {folder} && cd {folder} || exit 9",
        "base64 -d | tar -xf -",
        *sizes,
        f"before={_JOBS}",
        f'{line}; echo "status $?"',
        f'echo "new jobs: $(({_JOBS} - before))"',
        *([f"{written} > /dev/null && echo written"] if program.wrote else []),
    ]
    said = on_login(cluster, "\n".join(script), _archive(program), timeout=900)
    status = int(re.findall(r"^status (\d+)$", said, re.MULTILINE)[-1])
    assert program.said in said or program.travelling, said
    assert (status == 0) is runs, said
    assert f"new jobs: {int(runs)}" in said, said
    assert "written" in said.splitlines() or not program.wrote, said


def _archive(program):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for path, text in program.files.items():
            content = b"" if text.startswith("SIZE:") else _encoded(text)
            entry = tarfile.TarInfo(posixpath.normpath(path))
            entry.size, entry.mode = len(content), _mode(text)
            archive.addfile(entry, io.BytesIO(content))
    return base64.b64encode(buffer.getvalue()).decode()


def _encoded(text):
    return text.encode("latin-1" if "latin-1" in text else "utf-8")


def _mode(text):
    return 0o755 if text.startswith("#!") else 0o644


def _keys():
    return [job["key"] for job in json.loads(toolkit("jobs", "list", "--json").stdout)["jobs"]]
