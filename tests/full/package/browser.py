"""Control Chromium without a window by its debugging pipe (``--remote-debugging-pipe``)."""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_SECONDS = 30


class Browser:
    """One page in a browser; ``errors`` has the errors of the page's console."""

    def __init__(self, requests: int, answers: int) -> None:
        self._requests, self._answers = requests, os.fdopen(answers, "rb")
        self._number, self._session, self._rest = 0, None, b""
        self.errors: list[str] = []
        target = self._send("Target.createTarget", url="about:blank")["targetId"]
        attached = self._send("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self._send(f"{domain}.enable")

    def open(self, url: str, width: int) -> None:
        self._send(
            "Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False
        )
        self._send("Page.navigate", url=url)
        self.wait("document.readyState === 'complete'")

    def prefer(self, scheme: str) -> None:
        """Set the colour scheme that the browser reports to pages: ``light`` or ``dark``."""
        wish = {"name": "prefers-color-scheme", "value": scheme}
        self._send("Emulation.setEmulatedMedia", media="", features=[wish])

    def evaluate(self, code: str) -> Any:
        found = self._send("Runtime.evaluate", expression=code, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def wait(self, condition: str) -> None:
        poll = f"""new Promise((done, failed) => {{
            const end = Date.now() + {1000 * _SECONDS};
            const look = () => ({condition}) ? done(true)
                : Date.now() > end ? failed("not within {_SECONDS} s") : setTimeout(look, 50);
            look();
        }})"""
        assert self.evaluate(poll) is True

    def _send(self, method: str, **params: object) -> Any:
        self._number += 1
        call = {"id": self._number, "method": method, "params": params}
        if self._session:
            call["sessionId"] = self._session
        os.write(self._requests, json.dumps(call).encode() + b"\0")
        while True:
            answer = json.loads(self._read())
            if answer.get("id") == self._number:
                assert "error" not in answer, answer["error"]
                return answer["result"]
            self._note(answer)

    def _note(self, event: dict[str, Any]) -> None:
        params = event.get("params", {})
        if event.get("method") == "Runtime.exceptionThrown":
            self.errors.append(params["exceptionDetails"]["text"])
        elif event.get("method") == "Runtime.consoleAPICalled" and params["type"] == "error":
            self.errors.append(str([one.get("value") for one in params["args"]]))
        elif event.get("method") == "Log.entryAdded" and params["entry"]["level"] == "error":
            self.errors.append(f"{params['entry']['text']} {params['entry'].get('url', '')}")

    def _read(self) -> bytes:
        while b"\0" not in self._rest:
            chunk = self._answers.read1(1 << 16)
            assert chunk, "the browser exited"
            self._rest += chunk
        message, _, self._rest = self._rest.partition(b"\0")
        return message


@contextmanager
def opened(profile: Path) -> Iterator[Browser]:
    program = shutil.which("chromium")
    assert program, "apt-get install chromium"
    requests, ours = os.pipe()
    answers, theirs = os.pipe()
    # The browser reads requests from file descriptor 3 and writes answers to 4.
    line = [
        "bash", "-c", f'exec "$@" 3<&{requests} 4>&{theirs}', "bash", program, "--headless=new",
        "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--remote-debugging-pipe",
        f"--user-data-dir={profile}",
    ]  # fmt: skip
    process = subprocess.Popen(line, pass_fds=(requests, theirs), stderr=subprocess.DEVNULL)
    os.close(requests)
    os.close(theirs)
    try:
        yield Browser(ours, answers)
    finally:
        process.kill()
        process.wait()
        os.close(ours)
