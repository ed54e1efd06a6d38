"""Run the installed program ``toolkit`` as users would, in a separate process."""

import signal
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]

_CLEAN_UP = 90.0
"""Seconds that toolkit has to stop its containers and remove partial files after an interrupt."""


class _Toolkit:
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
            start_new_session=True,  # a Ctrl-C reaches only pytest, and the code below interrupts toolkit
        )
        try:
            out, err = process.communicate(timeout=timeout)
        except BaseException:
            # Interrupt the program first: killing it immediately would leave containers and half-written
            # files behind.
            process.send_signal(signal.SIGINT)
            try:
                process.communicate(timeout=_CLEAN_UP)
            finally:
                process.kill()
            raise
        if ok and process.returncode:
            raise AssertionError(f"toolkit {words} ended in {process.returncode}\n{out}\n{err}")
        # The output indents a rank's traceback; a traceback of toolkit itself is not indented.
        assert not any(line.startswith("Traceback (most") for line in err.splitlines()), err
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)


toolkit = _Toolkit()


def interrupted_at(step: str, *words: str) -> tuple[int, list[str]]:
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
