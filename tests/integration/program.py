"""Run the installed program as a person would, with its own process and exit code."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


class _Toolkit:
    """Call it with words; a failure that was not expected shows what the program said."""

    def words(self, *words: str) -> list[str]:
        return [str(Path(sys.executable).with_name("toolkit")), *words]

    def __call__(
        self, *words: str, ok: bool = True, timeout: float = 900
    ) -> "subprocess.CompletedProcess[str]":
        done = subprocess.run(
            self.words(*words),
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=timeout,
            stdin=subprocess.DEVNULL,
        )
        if ok and done.returncode:
            raise AssertionError(f"toolkit {words} ended in {done.returncode}\n{done.stdout}\n{done.stderr}")
        assert "Traceback (most recent call last)" not in done.stderr or "[rank" in done.stderr, done.stderr
        return done


toolkit = _Toolkit()
