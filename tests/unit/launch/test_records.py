import threading

import msgspec
import pytest

from tests.unit.launch.examples import RECORD
from toolkit.errors import BadInput
from toolkit.launch import records


@pytest.fixture(autouse=True)
def _own_state(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


def keyed(key, number, submitted="2026-11-21T00:00:00+00:00"):
    return msgspec.structs.replace(RECORD, key=key, id=number, submitted=submitted)


def test_a_saved_record_is_found_again():
    records.save(RECORD)
    assert records.find(RECORD.key) == RECORD
    assert records.find("7") == RECORD
    assert records.find("mnist-2026") == RECORD
    assert records.find(None) == RECORD


def test_records_are_private():
    records.save(RECORD)
    assert (records.folder(RECORD.key) / "record.json").stat().st_mode & 0o077 == 0


def test_the_last_one_is_the_last_submitted():
    records.save(keyed("b", "1", "2026-01-02T00:00:00+00:00"))
    records.save(keyed("a", "2", "2026-01-03T00:00:00+00:00"))
    assert [r.key for r in records.every()] == ["b", "a"]
    assert records.find(None).key == "a"


def test_no_job_yet_says_what_to_do():
    with pytest.raises(BadInput, match="no job was launched") as caught:
        records.find(None)
    assert "toolkit launch" in caught.value.fix


def test_unknown_and_ambiguous_names_list_choices():
    records.save(keyed("mnist-1", "1"))
    records.save(keyed("mnist-2", "2"))
    with pytest.raises(BadInput, match=r"no job 'x'.*mnist-1, mnist-2"):
        records.find("x")
    with pytest.raises(BadInput, match="more than one"):
        records.find("mnist")


def test_a_damaged_record_is_passed_over():
    records.save(RECORD)
    broken = records.folder("broken")
    broken.mkdir()
    (broken / "record.json").write_text("{")
    assert records.every() == [RECORD]


def test_a_forgotten_record_is_gone():
    records.save(RECORD)
    records.forget(RECORD)
    assert records.every() == []
    assert not records.folder(RECORD.key).exists()


def test_keys_are_unique_and_records_of_many_threads_survive():
    keys = [records.new_key("x") for _ in range(50)]
    assert len(set(keys)) == 50
    threads = [threading.Thread(target=records.save, args=(keyed(k, "1"),)) for k in keys]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {r.key for r in records.every()} == set(keys)
