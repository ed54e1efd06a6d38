import contextlib
import hashlib
import resource
import threading

import pytest

from tests.unit.dataset.server import cut, refusing, resuming, serving, whole
from tests.unit.heard import Heard
from tests.unit.tables import every_row
from toolkit.dataset.download import Full, download
from toolkit.errors import CheckFailed, Missing
from toolkit.model.progress import Silent

CONTENT = bytes(range(256)) * 100
SHA256 = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture(autouse=True)
def direct(monkeypatch):
    monkeypatch.setenv("no_proxy", "*")


@pytest.fixture
def store(tmp_path):
    return tmp_path / "store"


@pytest.fixture
def take(store):
    def run(url, *, sha256=SHA256, tell=None):
        with download(f"{url}/file", store, tell or Silent(), size=len(CONTENT), sha256=sha256) as file:
            return file.read()

    return run


def parts(store):
    return [path.stat().st_size for path in store.iterdir()]


@every_row("sha256", [SHA256, ""])
def test_it_arrives_and_is_forgotten(take, store, sha256):
    with serving({"/file": whole(CONTENT)}) as (url, _):
        assert take(url, sha256=sha256) == CONTENT
    assert parts(store) == []


@every_row("sha256", [SHA256, ""])
def test_what_breaks_off_is_gone_on_with_at_once_while_it_gets_any_further(take, sha256):
    with serving({"/file": resuming(CONTENT, 10_000)}) as (url, asked):
        assert take(url, sha256=sha256) == CONTENT
    assert len(asked) == 3


def test_a_server_that_always_sends_the_same_beginning_is_given_up(take, store):
    with (
        serving({"/file": cut(CONTENT, 10_000)}) as (url, asked),
        pytest.raises(Missing, match="the download stopped"),
    ):
        take(url)
    assert len(asked) == 2
    assert parts(store) == [10_000]


@every_row("sha256", [SHA256, ""])
def test_the_next_run_takes_only_the_rest(take, store, sha256):
    with serving({"/file": cut(CONTENT, 10_000)}) as (url, _):
        port = url
        with pytest.raises(Missing):
            take(url, sha256=sha256)
    # The second server needs the same address, because the name of the partial file depends on it.
    (part,) = store.iterdir()
    sent = []

    def rest(request):
        sent.append(request.headers.get("Range"))
        resuming(CONTENT, len(CONTENT))(request)

    with serving({"/file": rest}) as (url, _):
        part.rename(part.with_name(f"{hashlib.sha256(f'{url}/file'.encode()).hexdigest()[:16]}.part"))
        assert port != url
        assert take(url, sha256=sha256) == CONTENT
    assert sent == ["bytes=10000-"]


@every_row("left", [b"x" * 10_000, b"x" * len(CONTENT), b"x" * 90_000, CONTENT[:-1] + b"x"])
def test_a_beginning_of_something_else_is_dropped_and_all_is_fetched_anew(take, store, left):
    store.mkdir()
    with serving({"/file": resuming(CONTENT, len(CONTENT))}) as (url, _):
        (store / f"{hashlib.sha256(f'{url}/file'.encode()).hexdigest()[:16]}.part").write_bytes(left)
        assert take(url) == CONTENT


def begun(store, url, content):
    """Write the files that an interrupted earlier download would have left."""
    store.mkdir()
    (store / f"{hashlib.sha256(f'{url}/file'.encode()).hexdigest()[:16]}.part").write_bytes(content)


@every_row("status", [408, 425, 429])
def test_a_busy_server_is_waited_for_and_what_has_come_is_kept(take, store, status):
    sent = []

    def rest(request):
        sent.append(request.headers.get("Range"))
        resuming(CONTENT, len(CONTENT))(request)

    with serving({"/file": refusing(status, rest)}) as (url, asked):
        begun(store, url, CONTENT[:10_000])
        assert take(url) == CONTENT
    assert (len(asked), sent) == (2, ["bytes=10000-"])


@every_row(("status", "times"), [(429, 5), (403, 1)])
def test_a_server_that_gives_nothing_any_more_costs_nothing_that_has_come(take, store, status, times):
    with serving({"/file": refusing(status, whole(CONTENT), 100)}) as (url, asked):
        begun(store, url, CONTENT[:10_000])
        with pytest.raises(Missing, match=str(status)):
            take(url)
    assert (len(asked), parts(store)) == (times, [10_000])


def test_the_password_of_an_address_is_not_told(take):
    for answer in (whole(b"x" * len(CONTENT)), whole(CONTENT * 50), whole(CONTENT[:9])):
        with serving({"/file": answer}) as (url, _), pytest.raises((CheckFailed, Missing)) as caught:
            take(url.replace("://", "://ada:s3cret@"))
        assert "s3cret" not in str(caught.value)


def test_what_is_whole_is_not_asked_for_again(take, store):
    store.mkdir()
    with serving({}) as (url, asked):
        (store / f"{hashlib.sha256(f'{url}/file'.encode()).hexdigest()[:16]}.part").write_bytes(CONTENT)
        assert take(url) == CONTENT
    assert asked == []


def test_a_wrong_digest_is_told_and_nothing_stays(take, store):
    with (
        serving({"/file": whole(b"x" * len(CONTENT))}) as (url, asked),
        pytest.raises(CheckFailed, match=f"wrong checksum: .* instead of {SHA256}"),
    ):
        take(url)
    assert (asked, parts(store)) == (["/file"], [])


@every_row("sha256", [SHA256, ""])
def test_more_than_there_should_be_is_not_taken(take, store, sha256):
    with (
        serving({"/file": whole(CONTENT * 50)}) as (url, _),
        pytest.raises(CheckFailed, match="is longer than"),
    ):
        take(url, sha256=sha256)
    assert parts(store) == []


def test_less_than_there_should_be_is_told(take):
    with serving({"/file": whole(CONTENT[:9])}) as (url, _), pytest.raises(Missing, match="ended after 9 of"):
        take(url)


def test_of_a_server_that_has_nothing_nothing_is_left(take, store):
    with serving({}) as (url, _), pytest.raises(Missing, match="404"):
        take(url)
    assert parts(store) == []


def test_what_is_of_no_use_as_a_whole_is_not_kept(store):
    with serving({"/file": whole(CONTENT)}) as (url, _), pytest.raises(Missing, match="no archive"):  # noqa: SIM117
        with download(f"{url}/file", store, Silent(), size=len(CONTENT)):
            raise Missing("no archive")
    assert parts(store) == []


def test_an_interrupt_keeps_what_has_come(store):
    class Impatient(Silent):
        def detail(self, text):
            raise KeyboardInterrupt

    with serving({"/file": whole(CONTENT)}) as (url, _), pytest.raises(KeyboardInterrupt):  # noqa: SIM117
        with download(f"{url}/file", store, Impatient(), size=len(CONTENT), sha256=SHA256):
            pass
    assert parts(store)[0] > 0


def test_several_at_once_get_it_one_after_another_and_say_for_what_they_wait(take):
    got, heard = [], Heard()
    with serving({"/file": resuming(CONTENT, 1000)}) as (url, _):
        threads = [threading.Thread(target=lambda: got.append(take(url, tell=heard))) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        waited = f"Waiting for another process that fetches {url}/file"
    assert got == [CONTENT] * 4
    assert waited in heard.steps


@contextlib.contextmanager
def small_files():
    """Limit this process to 4 KiB per file, to simulate a full disk.

    Use this context only around the download, because the limit would also stop pytest's own output.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_disk_that_takes_no_more_is_told_with_what_to_do(take):
    full = pytest.raises(Full, match="too large")
    with serving({"/file": whole(CONTENT)}) as (url, _), full as told, small_files():
        take(url)
    assert "TOOLKIT_CACHE_DIR" in told.value.fix
