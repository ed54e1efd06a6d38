import os
import threading

from toolkit.trainers.ranks.output import wait_for_reader


def test_a_rank_waits_until_the_launcher_has_read_its_last_line(tmp_path):
    reader, writer = os.pipe()
    os.write(writer, b"mnist: the fault")
    rank = threading.Thread(target=wait_for_reader, args=(writer, 60))
    rank.start()
    rank.join(0.1)
    assert rank.is_alive()
    assert os.read(reader, 100) == b"mnist: the fault"
    rank.join(30)
    assert not rank.is_alive()
    os.write(writer, b"an unread line")
    wait_for_reader(writer, 0.01)
    with (tmp_path / "log").open("wb") as file:
        file.write(b"a file has no reader")
        file.flush()
        wait_for_reader(file.fileno(), 60)
