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


def damaged():
    records.folder("broken").mkdir(parents=True)
    (records.folder("broken") / "record.json").write_text("{")
    return records.folder("broken") / "record.json"


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


def test_of_two_in_one_second_the_later_is_the_last():
    records.save(keyed("z", "1", "2026-01-02T00:00:00.000001+00:00"))
    records.save(keyed("a", "2", "2026-01-02T00:00:00.000002+00:00"))
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


def test_a_damaged_record_is_told_and_passed_over():
    records.save(RECORD)
    broken = damaged()
    told = []
    assert records.every(told.append) == [RECORD]
    assert len(told) == 1
    assert told[0].startswith(f"{broken}: not a job record")
    assert records.find(None, told.append) == RECORD
    assert len(told) == 2


def test_where_all_records_are_damaged_it_is_not_said_that_there_are_none():
    damaged()
    with pytest.raises(BadInput, match="no record of a job can be read"):
        records.find(None)


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
