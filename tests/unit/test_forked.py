"""Test that a process that ``tests.forked`` forks behaves like a newly started Python process."""

import json
import os
import subprocess
import sys

from tests import forked
from tests.unit.tables import every_row

SAYS = """
import json, os, sys
print(json.dumps({
    "words": sys.argv[1:], "cwd": os.getcwd(), "env": dict(os.environ),
    "session": os.getsid(0) == os.getpid(), "terminal": sys.stdout.isatty(), "encoding": sys.stdout.encoding,
    "errors": sys.stderr.errors, "path": sys.path[0],
}))
"""


def test_words_environment_folder_and_streams_are_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(forked.ROOT), "ONE": "two\udcff"}
    said = json.loads(forked.run(["a b", ""], env=env, code=SAYS).stdout)
    words = [sys.executable, "-c", SAYS, "a b", ""]
    started = subprocess.run(words, env=env, capture_output=True, check=True, start_new_session=True)
    own = json.loads(started.stdout)
    assert {**said, "path": "", "env": {**own["env"], **said["env"]}} == own
    assert said["env"]["ONE"] == "two\udcff"


@every_row(
    ("code", "status"),
    [
        ("", 0),
        ("raise SystemExit", 0),
        ("raise SystemExit(7)", 7),
        ("raise SystemExit('why')", 1),
        ("raise ValueError", 1),
        ("import os; os._exit(3)", 3),
        ("import os; os.kill(os.getpid(), 9)", -9),
        ("import atexit; atexit.register(print, 'end')", 0),
    ],
)
def test_it_ends_as_python_ends(code, status):
    code = code or "pass"
    done = forked.run([], code=code)
    real = subprocess.run([sys.executable, "-c", code], capture_output=True)
    assert done.returncode == real.returncode == status
    assert done.stdout == real.stdout
    assert done.stderr.splitlines()[-1:] == real.stderr.splitlines()[-1:]


def test_what_one_process_changes_another_does_not_see():
    change = "import toolkit, os; toolkit.seen = True; os.environ['SEEN'] = '1'"
    assert forked.run([], code=change).returncode == 0
    look = "import toolkit, os; raise SystemExit(hasattr(toolkit, 'seen') or 'SEEN' in os.environ)"
    assert forked.run([], code=look).returncode == 0
