import os
import signal
import time
from pathlib import Path

import pytest

from tests.unit.heard import Heard
from tests.unit.tables import every_row
from toolkit.errors import BadInput, CheckFailed
from toolkit.files import hash_file
from toolkit.model.progress import Silent
from toolkit.run.command import Completed
from toolkit.run.local import LocalRunner
from toolkit.run.remote.ssh import shell_line
from toolkit.run.stage import Parcel, part_name, remote_hashes, stage


def test_what_is_there_already_is_not_copied_again(tmp_path):
    source = tmp_path / "a"
    source.write_text("x")
    parcel = Parcel.of(source, str(tmp_path / "there" / "a"))
    assert stage(LocalRunner(), [parcel], Silent()) == 1
    assert stage(LocalRunner(), [parcel], Silent()) == 0


def test_a_file_with_other_bytes_is_replaced(tmp_path):
    (tmp_path / "a").write_text("new")
    (tmp_path / "b").write_text("old")
    stage(LocalRunner(), [Parcel.of(tmp_path / "a", str(tmp_path / "b"))], Silent())
    assert (tmp_path / "b").read_text() == "new"


def test_a_copy_that_arrives_damaged_is_removed_and_told(tmp_path):
    (tmp_path / "a").write_text("x")
    there = tmp_path / "there"

    class Lossy(LocalRunner):
        def send(self, source, target, progress=None):
            super().write(target, b"")

    with pytest.raises(CheckFailed, match="differs from"):
        stage(Lossy(), [Parcel.of(tmp_path / "a", str(there / "b"))], Silent())
    assert list(there.iterdir()) == []


def broken_off(tmp_path, rest):
    """Return a file to copy; an earlier copy has left the partial file ``rest`` at the target."""
    source = tmp_path / "a"
    source.write_bytes(b"0123456789")
    parcel = Parcel.of(source, str(tmp_path / "b"))
    Path(part_name(parcel)).write_bytes(rest)
    return parcel


def test_a_copy_goes_on_where_an_earlier_one_broke_off(tmp_path):
    parcel, heard = broken_off(tmp_path, b"0123"), Heard()
    assert stage(LocalRunner(), [parcel], heard) == 1
    assert (tmp_path / "b").read_bytes() == b"0123456789"
    assert any("Resuming" in step for step in heard.steps)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a", "b"]


@every_row("rest", [b"damaged", b"much longer than it should be"])
def test_a_rest_that_is_damaged_is_sent_again(tmp_path, rest):
    stage(LocalRunner(), [broken_off(tmp_path, rest)], Silent())
    assert (tmp_path / "b").read_bytes() == b"0123456789"


def test_a_copy_that_another_finished_first_counts(tmp_path):
    class Raced(LocalRunner):
        def send(self, source, target, progress=None):
            super().send(source, target, progress)
            Path(target).rename(tmp_path / "b")

    (tmp_path / "a").write_text("x")
    assert stage(Raced(), [Parcel.of(tmp_path / "a", str(tmp_path / "b"))], Silent()) == 1
    assert (tmp_path / "b").read_text() == "x"


def test_hashes_of_odd_names_and_absent_files(tmp_path):
    odd = tmp_path / "a \n\\ü"
    odd.write_text("x")
    assert remote_hashes(LocalRunner(), [str(odd), str(tmp_path / "absent")]) == {str(odd): hash_file(odd)}
    assert remote_hashes(LocalRunner(), []) == {}


def test_thousands_of_files_are_asked_for_in_lines_that_a_shell_can_be_given():
    paths = [f"/work/ada/data/it's a class/image {number:06d}.jpg" for number in range(5_000)]
    lines = []

    def answering(command):
        lines.append(shell_line(command))
        asked = command.words[command.words.index("--") + 1 :]
        return Completed(command, 0, "".join(f"{path[-10:-4]}  {path}\0" for path in asked).encode(), b"")

    assert remote_hashes(Odd(answering), paths) == {path: path[-10:-4] for path in paths}
    assert len(lines) > 1
    assert max(map(len, lines)) < 1 << 17


def test_one_path_longer_than_a_piece_is_asked_for_alone():
    paths = ["/a", "/" + "b" * 70_000, "/c"]
    asked = []

    def answering(command):
        asked.append(command.words[3:])
        return Completed(command, 0, b"", b"")

    assert remote_hashes(Odd(answering), paths) == {}
    assert asked == [(path,) for path in paths]


@every_row(
    "said", [b"/bin/bash: Argument list too long\n", b"bash: fork: retry: Resource unavailable\n", b""]
)
def test_a_shell_that_cannot_be_started_says_nothing_about_files(said):
    with pytest.raises(CheckFailed, match="exited with status 1"):
        remote_hashes(Odd(lambda command: Completed(command, 1, b"", said)), ["/a"])


class Odd(LocalRunner):
    def __init__(self, answer):
        self.answer = answer

    def run(self, command):
        return self.answer(command) if command.words[0] == "sha256sum" else super().run(command)


def without_zero(command):
    if "--zero" in command.words:
        said = b"sha256sum: unrecognized option '--zero'\n"
        return Completed(command, 1, b"", said)
    return LocalRunner().run(command)


def test_a_sha256sum_without_zero_is_asked_file_by_file(tmp_path):
    odd = tmp_path / "a \n\\ü"
    odd.write_text("x")
    plain = tmp_path / "b"
    plain.write_text("y")
    wanted = [str(odd), str(plain), str(tmp_path / "absent")]
    assert remote_hashes(Odd(without_zero), wanted) == {
        str(odd): hash_file(odd),
        str(plain): hash_file(plain),
    }


@every_row(("status", "timed_out", "said"), [(-1, True, "timed out"), (127, False, "exited with status 127")])
def test_a_sha256sum_that_fails_is_told_and_no_file_is_removed(tmp_path, status, timed_out, said):
    def failing(command):
        return Completed(command, status, b"", b"no", timed_out)

    (tmp_path / "a").write_text("x")
    (tmp_path / "b").write_text("x")
    with pytest.raises(CheckFailed, match=f"reading the SHA-256.*{said}"):
        stage(Odd(failing), [Parcel.of(tmp_path / "a", str(tmp_path / "b"))], Silent())
    assert (tmp_path / "b").exists()


def test_a_copy_that_cannot_be_read_back_is_told(tmp_path):
    def unreadable(command):
        return Completed(command, 1, b"", b"sha256sum: b: Permission denied")

    (tmp_path / "a").write_text("x")
    with pytest.raises(CheckFailed, match="toolkit cannot read the copy"):
        stage(Odd(unreadable), [Parcel.of(tmp_path / "a", str(tmp_path / "b"))], Silent())
    assert not (tmp_path / "b").exists()


def test_an_interrupted_copy_has_no_name_and_the_next_goes_on(tmp_path):
    class Interrupted(Silent):
        def detail(self, text):
            raise KeyboardInterrupt

    (tmp_path / "a").write_text("x")
    parcel = Parcel.of(tmp_path / "a", str(tmp_path / "there" / "b"))
    with pytest.raises(KeyboardInterrupt):
        stage(LocalRunner(), [parcel], Interrupted())
    assert not (tmp_path / "there" / "b").exists()
    assert stage(LocalRunner(), [parcel], Silent()) == 1
    assert [p.name for p in (tmp_path / "there").iterdir()] == ["b"]


def test_an_interrupt_reaches_a_copy_between_two_packets(tmp_path):
    ended = []

    class Slow(LocalRunner):
        def send(self, source, target, progress=None):
            time.sleep(0.1)  # time for the other thread to wait
            os.kill(os.getpid(), signal.SIGINT)
            try:
                for _ in range(1000):
                    time.sleep(0.01)
                    progress(1, 2)
            except KeyboardInterrupt:
                ended.append("in its own callback")
                raise

    (tmp_path / "a").write_text("x")
    with pytest.raises(KeyboardInterrupt):
        stage(Slow(), [Parcel.of(tmp_path / "a", str(tmp_path / "b"))], Silent())
    assert ended == ["in its own callback"]


def test_an_unreadable_source_is_named(tmp_path):
    with pytest.raises(BadInput, match="absent: cannot be read"):
        hash_file(tmp_path / "absent")
