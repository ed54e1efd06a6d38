"""Parse the event stream that the Docker engine sends during an image build. Find the current step, its
output, and the cause of a failure.
"""

import re
from collections import deque
from collections.abc import Mapping
from typing import Any

from toolkit.errors import CheckFailed
from toolkit.model.progress import Tell

_KEPT_LINES = 15
_STEP = re.compile(r"^Step (?P<number>\d+)/(?P<of>\d+) : (?P<instruction>.*)", re.DOTALL)
_RUNNING = re.compile(r"^ ---> Running in (?P<container>[0-9a-f]{12,64})\s*$")
_COLOUR = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_STATUS = re.compile(r"returned a non-zero code: (?P<status>\d+)")
_NOISE = re.compile(r"^( ---> |Removing intermediate container )")
_KILLED = 137
_FAULT = re.compile(r"[:)] (?:fatal )?error: |^\s*CMake Error|: undefined reference to ")
"""A pattern for error lines of compilers, CMake and linkers, which are often far above the last line of a
build's output.
"""
_KEPT_FAULTS = 6


class BuildLog:
    """The state of an image build, read from the event stream of the Docker engine. ``subject`` names the
    image in messages, and ``memory`` is the build's memory limit in bytes.
    """

    def __init__(self, subject: str, tell: Tell, memory: int) -> None:
        self.image = ""
        self.container = ""
        self._subject = subject
        self._tell = tell
        self._memory = memory
        self._step = ""
        self._instruction = ""
        self._lines: deque[str] = deque(maxlen=_KEPT_LINES)
        self._faults: list[str] = []

    def take(self, event: Mapping[str, Any]) -> None:
        """Parse one event of the engine's event stream.

        Raises:
            CheckFailed: if the event reports a failed step.
        """
        if "error" in event:
            raise self._failure(str(event["error"]))
        if "aux" in event:
            self.image = event["aux"].get("ID", self.image)
        text = _COLOUR.sub("", event.get("stream", ""))
        if begins := _STEP.match(text):
            self._begin(begins)
        elif running := _RUNNING.match(text.strip("\n")):
            self.container = running["container"]
        else:
            for line in text.splitlines():
                if line.strip() and not _NOISE.match(line):
                    self._lines.append(line.rstrip())
                    if len(self._faults) < _KEPT_FAULTS and _FAULT.search(line):
                        self._faults.append(line.strip())
                    self._tell.detail(line.rstrip())

    def where(self) -> str:
        """Return a phrase that names the current build step in messages, such as "before the first step"."""
        return f"in step {self._step} ({self._instruction})" if self._step else "before the first step"

    def recent(self) -> tuple[str, ...]:
        """Return the first compiler errors in the output of the current build step, followed by the last
        lines of this output.
        """
        last = tuple(self._lines)
        return (*(fault for fault in self._faults if fault not in map(str.strip, last)), *last)

    def _begin(self, step: re.Match[str]) -> None:
        self._lines.clear()
        self._faults.clear()
        self.container = ""
        self._step = f"{step['number']} of {step['of']}"
        self._instruction = _shorten(step["instruction"])
        doing = f"{self._subject}, step {self._step}: {self._instruction}"
        # Only RUN, COPY and ADD take time; other Dockerfile instructions only set metadata.
        slow = step["instruction"].startswith(("RUN", "COPY", "ADD"))
        (self._tell.step if slow else self._tell.detail)(doing)

    def _failure(self, message: str) -> CheckFailed:
        status = _STATUS.search(message)
        reason = f"the command exited with status {status['status']}" if status else message.strip()
        fix = (
            "fix the fault that the output shows, then run the same command again; Docker does not "
            "repeat finished steps"
        )
        text = "\n".join((*self._faults, *self._lines, message))
        if (status and int(status["status"]) == _KILLED) or "Killed signal" in text:
            reason = f"a command was killed, most likely by the memory limit of {self._memory >> 20} MiB"
            fix = "allow more memory: for example, set TOOLKIT_BUILD_MEMORY=8g"
        elif "No space left on device" in text or "no space left on device" in text:
            reason = "the disk of the Docker engine is full"
            fix = "delete images or files on this disk; `docker system df` shows what uses the space"
        return CheckFailed(
            f"{self._subject}: the build failed {self.where()}: {reason}", fix=fix, detail=self.recent()
        )


def _shorten(instruction: str) -> str:
    words = " ".join(instruction.split())
    return words if len(words) <= 76 else f"{words[:75]}…"
