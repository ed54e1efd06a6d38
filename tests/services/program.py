"""Run the installed program as users would, with its own process and exit code."""

import signal
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]

_CLEAN_UP = 90.0
"""Seconds for the program to clean up when a test is interrupted or takes too long."""


class _Toolkit:
    """Call the program with arguments; an unexpected failure shows the program's output."""

    def words(self, *words: str) -> list[str]:
        return [str(Path(sys.executable).with_name("toolkit")), *words]

    def __call__(
        self, *words: str, ok: bool = True, timeout: float = 900, cwd: Path = ROOT
    ) -> "subprocess.CompletedProcess[str]":
        process = subprocess.Popen(
            self.words(*words),
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,  # a Ctrl-C at the terminal is passed on below, once
        )
        try:
            out, err = process.communicate(timeout=timeout)
        except BaseException:
            # Do not kill the program at once: it would leave containers and half-written files behind.
            process.send_signal(signal.SIGINT)
            try:
                process.communicate(timeout=_CLEAN_UP)
            finally:
                process.kill()
            raise
        if ok and process.returncode:
            raise AssertionError(f"toolkit {words} ended in {process.returncode}\n{out}\n{err}")
        # A rank's traceback is shown with an indent; one of the program's own begins the line.
        assert not any(line.startswith("Traceback (most") for line in err.splitlines()), err
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)


toolkit = _Toolkit()


def interrupted_at(step: str, *words: str) -> tuple[int, list[str]]:
    """Press Ctrl-C when the program reports that ``step`` begins; return its exit status and output."""
    said = []
    with subprocess.Popen(toolkit.words(*words), cwd=ROOT, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr
        for line in process.stderr:
            said.append(line.rstrip("\n"))
            # A progress line starts with the time of day.
            if line[9:].startswith(step):
                process.send_signal(signal.SIGINT)
        status = process.wait(60)
    assert "Traceback" not in "\n".join(said)
    return status, said
