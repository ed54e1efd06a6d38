"""Test the download of a lock's files from a local server, which can behave wrongly."""

import base64
import hashlib
import http.server
import os
import signal
import subprocess
import sys
import threading
import time

import msgspec
import pytest

from tests.unit.heard import Heard
from tests.unit.tables import every_row
from toolkit.errors import CheckFailed, Missing
from toolkit.image.locks.fetch import _before_next, cost, fetch_files, is_fetched, path_of
from toolkit.model.lock import LockedFile
from toolkit.model.progress import Silent
from toolkit.run.web.http import Busy

CONTENT = bytes(range(256)) * 4096


class Served(http.server.BaseHTTPRequestHandler):
    """Sends the content of a path; ``ranges`` says whether the server supports HTTP ranges."""

    def do_GET(self):
        self.server.asked.append((self.path, self.headers.get("Range")))
        self.server.shown.append(self.headers.get("Authorization"))
        if self.server.busy:
            self.server.busy -= 1
            self.send_response(self.server.busy_status)
            self.send_header("Retry-After", "0")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        if self.path in self.server.moved:
            self.send_response(302)
            self.send_header("Location", self.server.moved[self.path])
            self.end_headers()
            return
        content = self.server.files.get(self.path)
        if content is None:
            self.send_error(404)
            return
        start = 0
        if (wanted := self.headers.get("Range")) and self.server.ranges:
            start = int(wanted.removeprefix("bytes=").rstrip("-"))
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(content) - start))
        self.end_headers()
        self.wfile.write(content[start : self.server.stops])

    def log_message(self, *words):
        pass


@pytest.fixture
def server(tmp_path, monkeypatch):
    monkeypatch.setenv("TOOLKIT_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("TOOLKIT_DEBIAN_MIRROR", raising=False)
    monkeypatch.setattr("toolkit.image.locks.fetch._PAUSES", (0.0,))
    for name in ("http_proxy", "HTTP_PROXY"):
        monkeypatch.delenv(name, raising=False)
    made = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Served)
    made.files, made.asked, made.ranges, made.stops, made.busy = {"/a": CONTENT}, [], True, None, 0
    made.busy_status, made.shown = 503, []
    made.moved = {}
    threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    yield made
    made.shutdown()
    made.server_close()


def locked(server, path, content=CONTENT, size=1 << 20):
    place = f"http://127.0.0.1:{server.server_port}{path}"
    digest = hashlib.sha256(content).hexdigest()
    return LockedFile(name="a", version="1", file="a.whl", origin=place, sha256=digest, size=size)


@every_row(
    ("sizes", "said"),
    [
        ((5_000_000,), "1 file (5.00 MB)"),
        ((2_000_000_000, 1_440_000_000), "2 files (3.44 GB)"),
        ((900_000, 0, 0), "3 files (900 kB, and 2 of unknown size)"),
        ((0, 0), "2 files (of unknown size)"),
    ],
)
def test_what_a_download_takes_is_said_before_it_begins(sizes, said):
    files = [
        LockedFile(name="a", version="1", file="a.whl", origin="index:3.11", sha256=f"{n:064}", size=size)
        for n, size in enumerate(sizes)
    ]
    assert cost(files) == said


def test_progress_says_how_many_files_and_bytes_are_here(server):
    heard = Heard()
    fetch_files([locked(server, "/a", size=len(CONTENT))], heard)
    assert heard.steps[0].startswith("Fetching 1 file (1.05 MB) into ")
    assert heard.details[-1] == "1 of 1 fetched, 1.05 MB of 1.05 MB"


def test_a_file_is_fetched_once_and_verified(server):
    file = locked(server, "/a")
    (path,) = fetch_files([file, file], Silent()).values()
    assert path.read_bytes() == CONTENT
    fetch_files([file], Silent())
    assert len(server.asked) == 1


def test_a_damaged_file_is_fetched_again(server):
    file = locked(server, "/a")
    fetch_files([file], Silent())
    path_of(file).write_bytes(CONTENT[:-1] + b"?")
    fetch_files([file], Silent())
    assert is_fetched(file)


def test_mirrors_are_tried_in_order(server, monkeypatch):
    here = f"http://127.0.0.1:{server.server_port}"
    server.files["/here/pool/a"] = CONTENT
    monkeypatch.setattr("toolkit.image.locks.fetch.of_machine", lambda: {"debian": (f"{here}/gone",)})
    file = msgspec.structs.replace(locked(server, ""), origin="debian:pool/a")
    fetch_files([file], Silent(), mirrors={"debian": (f"{here}/here",)})
    assert [path for path, _ in server.asked] == ["/gone/pool/a", "/here/pool/a"]


def test_what_was_begun_is_gone_on_with(server):
    file = locked(server, "/a")
    server.stops = 1000
    with pytest.raises(Missing, match=r"a.whl: the download failed from every address") as caught:
        fetch_files([file], Silent(), recipe="mine")
    assert "ends after 1000 of" in caught.value.detail[0] or "the download stopped" in caught.value.detail[0]
    assert not path_of(file).exists()
    server.stops = None
    fetch_files([file], Silent())
    assert server.asked[-1] == ("/a", "bytes=1000-")
    assert is_fetched(file)


def test_a_server_that_only_sends_whole_files_is_no_hindrance(server):
    file = locked(server, "/a")
    path_of(file).parent.mkdir(parents=True)
    path_of(file).with_name(".a.whl.part").write_bytes(CONTENT[:500])
    server.ranges = False
    fetch_files([file], Silent())
    assert is_fetched(file)


def test_a_beginning_that_is_another_files_is_thrown_away(server):
    file = locked(server, "/a")
    path_of(file).parent.mkdir(parents=True)
    path_of(file).with_name(".a.whl.part").write_bytes(b"x" * 500)
    fetch_files([file], Silent())
    assert [wanted for _, wanted in server.asked] == ["bytes=500-", None]


@every_row("other", [b"y" * len(CONTENT), CONTENT + b"more"])
def test_other_bytes_are_not_kept(server, other):
    server.files["/a"] = other
    file = locked(server, "/a")
    with pytest.raises(CheckFailed, match="does not match the lock") as caught:
        fetch_files([file], Silent(), recipe="mine")
    assert "`toolkit image lock mine --upgrade`" in caught.value.fix
    assert not path_of(file).exists()
    server.files["/a"] = CONTENT
    fetch_files([file], Silent())


def test_a_file_whose_size_is_not_known_is_fetched(server):
    file = locked(server, "/a", size=0)
    assert fetch_files([file], Silent())[file.sha256].stat().st_size == len(CONTENT)


HOLD = """
import fcntl, sys
with open(sys.argv[1], "ab") as part:
    fcntl.flock(part, fcntl.LOCK_EX)
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def held(server):
    """Yield a file and another process that locks the file, as a download does, until its standard input
    closes.
    """
    file = locked(server, "/a")
    part = path_of(file).with_name(".a.whl.part")
    part.parent.mkdir(parents=True)
    other = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(part)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with other:
        assert other.stdout.readline() == "held\n"
        yield file, other


def soon(seconds, do):
    timer = threading.Timer(seconds, do)
    timer.start()
    return timer


def test_a_file_that_another_process_fetches_is_waited_for(server, held):
    file, other = held
    release = soon(0.5, other.stdin.close)
    fetch_files([file], Silent())
    assert release.finished.is_set()
    assert is_fetched(file)


def test_an_interrupt_ends_the_wait_for_another_process(held):
    file, other = held
    # If the wait does not end, this timer releases the file after 20 seconds, and the test fails.
    late = soon(20, other.stdin.close)
    soon(0.5, lambda: os.kill(os.getpid(), signal.SIGINT))
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        fetch_files([file], Silent())
    assert time.monotonic() - began < 10
    assert other.poll() is None
    late.cancel()


def test_a_file_that_fails_ends_the_wait_for_another(server, held):
    file, other = held
    late = soon(20, other.stdin.close)
    with pytest.raises(Missing, match="the download failed from every address"):
        fetch_files([file, locked(server, "/gone", b"?", 1)], Silent())
    assert other.poll() is None
    late.cancel()


def test_where_it_is_gone_everywhere_the_mend_is_told(server):
    with pytest.raises(Missing, match="the download failed from every address") as caught:
        fetch_files([locked(server, "/gone")], Silent(), recipe="mine")
    assert "404" in caught.value.detail[0]
    assert caught.value.fix.endswith("`toolkit image lock mine --upgrade`")


def test_a_cache_that_takes_no_file_is_told_with_the_variable_that_moves_it(server, tmp_path):
    (tmp_path / "cache").write_text("no folder")
    with pytest.raises(Missing, match=r"the cache folder .* cannot be written") as caught:
        fetch_files([locked(server, "/a")], Silent())
    assert "TOOLKIT_CACHE_DIR" in caught.value.fix


@every_row("status", [503, 408, 425, 429])
def test_a_server_that_gives_way_for_a_moment_is_asked_again_for_the_rest(server, status):
    file = locked(server, "/a")
    path_of(file).parent.mkdir(parents=True)
    path_of(file).with_name(".a.whl.part").write_bytes(CONTENT[:500])
    server.busy, server.busy_status = 1, status
    fetch_files([file], Silent())
    assert server.asked == [("/a", "bytes=500-"), ("/a", "bytes=500-")]
    assert is_fetched(file)


def test_a_busy_server_is_left_alone_as_long_as_it_asks_for_but_not_for_ever():
    assert _before_next(Busy("x", "7"), 1.0) == 7
    assert _before_next(Busy("x", "99999"), 1.0) == 30
    assert _before_next(Busy("x", ""), 1.0) == _before_next(Missing("x"), 1.0) == 1.0


def with_login(file):
    return msgspec.structs.replace(file, origin=file.origin.replace("://", "://ada:s%40cret@"))


def test_the_password_of_an_address_is_shown_to_its_server_and_in_no_message(server):
    file = with_login(locked(server, "/a"))
    fetch_files([file], Silent())
    assert server.shown == ["Basic " + base64.b64encode(b"ada:s@cret").decode()]
    path_of(file).unlink()
    for content, stops in ((b"y" * len(CONTENT), None), (CONTENT * 2, None), (CONTENT, 10), (None, None)):
        server.files["/a"], server.stops = content, stops
        with pytest.raises((CheckFailed, Missing)) as caught:
            fetch_files([file], Silent())
        assert "cret" not in " ".join((caught.value.message, *caught.value.detail))
        assert f"127.0.0.1:{server.server_port}/a" in " ".join(caught.value.detail)


def test_a_server_that_sends_us_elsewhere_does_not_pass_our_password_on(server):
    server.moved = {"/moved": f"http://localhost:{server.server_port}/a"}
    fetch_files([with_login(locked(server, "/moved"))], Silent())
    assert [bool(shown) for shown in server.shown] == [True, False]


def test_a_file_that_is_not_there_is_asked_for_once(server):
    with pytest.raises(Missing):
        fetch_files([locked(server, "/gone")], Silent())
    assert [path for path, _ in server.asked] == ["/gone"]


def test_a_wheel_in_a_folder_that_pip_knows_is_copied_and_verified(server, tmp_path):
    (tmp_path / "wheels").mkdir()
    wheel = tmp_path / "wheels" / "torch-2+cpu.whl"
    wheel.write_bytes(CONTENT)
    file = msgspec.structs.replace(locked(server, "/none"), origin=wheel.as_uri())
    (path,) = fetch_files([file], Silent()).values()
    assert path.read_bytes() == CONTENT
    path.unlink()
    path.with_name(f".{path.name}.part").write_bytes(CONTENT[:1000])
    assert next(iter(fetch_files([file], Silent()).values())).read_bytes() == CONTENT
    path.unlink()
    wheel.unlink()
    with pytest.raises(Missing, match=r"a.whl: the download failed from every address"):
        fetch_files([file], Silent())
