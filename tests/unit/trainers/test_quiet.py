"""Test that only the lines of TensorFlow's import are hidden, also if the import crashes."""

import subprocess
import sys

from toolkit.trainers.quiet import without_lines

HEAD = "import os, sys\nfrom toolkit.trainers.quiet import *\n"
NOISE = "WARNING: All log messages before absl::InitializeLog() is called are written to STDERR\\n"


def run(program: str, env: dict[str, str] | None = None) -> tuple[int, str]:
    done = subprocess.run([sys.executable, "-c", HEAD + program], capture_output=True, text=True, env=env)
    return done.returncode, done.stderr


def test_only_the_given_lines_are_hidden(tmp_path):
    (tmp_path / "tensorflow.py").write_text(f"import os; os.write(2, b'{NOISE}a real warning\\n')")
    program = (
        f"sys.path.insert(0, {str(tmp_path)!r}); import_tensorflow(); os.write(2, b'{NOISE}')\n"
        "print('tensorflow' in sys.modules, file=sys.stderr)"
    )
    status, said = run(program)
    assert (status, said.splitlines()) == (0, ["a real warning", NOISE.removesuffix("\\n"), "True"])


def test_the_last_words_of_a_process_that_crashes_are_shown():
    status, said = run(
        "with without_lines(('noise',)):\n    os.write(2, b'noise\\nlost symbol\\n'); os.abort()"
    )
    assert status < 0
    assert said == "lost symbol\n"
    odd = "os.write(2, b'a\\x00b\\n'); os.write(2, b'lost symbol\\n')"
    assert run(f"with without_lines(('noise',)):\n    {odd}")[1].endswith("lost symbol\n")


def test_without_grep_and_without_tensorflow_nothing_is_lost(monkeypatch, capfd):
    status, said = run("import_tensorflow(); os.write(2, b'a line\\n')", {"PATH": "/none"})
    assert (status, said) == (0, "a line\n")
    monkeypatch.setenv("PATH", "/none")
    with without_lines(("noise",)):
        print("noise", file=sys.stderr)
    assert capfd.readouterr().err == "noise\n"
