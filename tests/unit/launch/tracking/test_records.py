import threading

import msgspec
import pytest

from tests import forked
from tests.unit.launch.examples import RECORD
from toolkit.errors import BadInput
from toolkit.launch.tracking import records


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


def test_a_job_that_went_on_is_found_by_the_number_that_its_person_was_told_first():
    records.save(msgspec.structs.replace(RECORD, id="48", numbers=("47", "48")))
    assert records.find("47").id == "48"


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
    with pytest.raises(BadInput, match=r"job 'x': not found.*mnist-1, mnist-2"):
        records.find("x")
    with pytest.raises(BadInput, match="matches several jobs"):
        records.find("mnist")


def test_the_newest_of_several_jobs_with_one_name_can_be_meant():
    records.save(keyed("mnist-1", "1", "2026-01-02T00:00:00.000001+00:00"))
    records.save(keyed("mnist-2", "2", "2026-01-02T00:00:00.000002+00:00"))
    assert records.find(RECORD.spec.name, newest=True).key == "mnist-2"
    with pytest.raises(BadInput, match="matches several jobs"):
        records.find("mnist-", newest=True)


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
    with pytest.raises(BadInput, match="no job record can be read"):
        records.find(None)


def test_a_forgotten_record_is_gone():
    records.save(RECORD)
    records.forget(RECORD)
    assert records.every() == []
    assert not records.folder(RECORD.key).exists()


def test_a_change_brings_no_forgotten_record_back_and_a_number_of_slurms_does():
    records.save(RECORD)
    records.forget(RECORD)
    assert records.update(RECORD, state="failed").state == "failed"
    assert records.every() == []
    assert not records.folder(RECORD.key).exists()
    records.update(RECORD, id="9")
    assert records.find("9").key == RECORD.key


def test_keys_are_unique_and_records_of_many_threads_survive():
    keys = [records.new_key("x") for _ in range(50)]
    assert len(set(keys)) == 50
    threads = [threading.Thread(target=records.save, args=(keyed(k, "1"),)) for k in keys]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {r.key for r in records.every()} == set(keys)


def test_a_change_is_made_to_the_record_as_it_is_and_not_as_it_was_read():
    records.save(RECORD)
    records.update(RECORD, nodes="node1")
    assert records.update(RECORD, started="now").nodes == "node1"


def test_an_answer_from_before_its_end_does_not_bring_a_job_back():
    records.save(RECORD)
    records.update(RECORD, state="completed", exit_code=0)
    late = records.update(RECORD, state="running", nodes="node1")
    assert (late.state, late.exit_code, late.nodes) == ("completed", 0, "node1")
    assert records.update(RECORD, state="running", restarts=1).state == "running"


def test_a_lock_that_somebody_keeps_holds_nobody_up_for_long(monkeypatch):
    monkeypatch.setattr(records, "_LOCK_SECONDS", 0.05)
    records.save(RECORD)
    with records._record_lock(records.folder(RECORD.key)):
        assert records.update(RECORD, nodes="node1").nodes == "node1"


_MANY = """
import sys, msgspec
from tests.unit.launch.examples import RECORD
from toolkit.launch.tracking import records
me, field = sys.argv[1:]
shared = msgspec.structs.replace(RECORD, key="shared")
for number in range(13):
    record = msgspec.structs.replace(RECORD, key=records.new_key("job"), id="", state="unknown")
    records.save(record)
    records.update(record, id=f"{me}{number:02}", state="pending")
    records.update(shared, **{field: f"{me}-{number}"})
    records.every(sys.exit)
"""


def test_eight_processes_at_once_lose_no_record_and_no_change(tmp_path):
    fields = ["nodes", "started", "ended", "host", "cluster", "ssh_config", "predicted", "place"]
    records.save(keyed("shared", "1"))
    with (tmp_path / "said").open("w+") as said:
        streams = (said.fileno(), said.fileno(), said.fileno())
        running = [forked.start((me, field), streams, code=_MANY) for me, field in enumerate(fields, 1)]
        assert [process.wait() for process in running] == [0] * 8, (tmp_path / "said").read_text()
    shared = records.find("shared")
    assert [getattr(shared, field) for field in fields] == [f"{n}-12" for n in range(1, 9)]
    made = [record for record in records.every() if record.key != "shared"]
    assert sorted(record.id for record in made) == sorted(
        f"{n}{i:02}" for n in range(1, 9) for i in range(13)
    )
    assert {record.state for record in made} == {"pending"}


def test_an_answer_about_a_number_does_not_end_the_one_that_goes_on_in_its_place():
    records.save(RECORD)
    records.update(RECORD, id="8", numbers=("7", "8"), state="pending")
    seen = records.update(RECORD, state="failed", exit_code=75)
    assert (seen.id, seen.state, seen.exit_code) == ("8", "pending", None)
    assert records.find("8") == seen
