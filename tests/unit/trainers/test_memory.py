"""Memory of this process, and what it may still take."""

from toolkit.trainers.training import memory


def test_this_process_has_some_memory_and_may_take_some():
    assert 1 << 20 < memory.resident() < 1 << 36
    assert memory.available() > 1 << 20


def test_a_cgroup_has_left_what_it_did_not_use_and_the_cache_of_files(tmp_path):
    limit, used, stat = (tmp_path / name for name in ("max", "current", "stat"))
    used.write_text("700\n")
    stat.write_text("anon 500\ninactive_file 150\n")
    limit.write_text("1000\n")
    assert memory._left(limit, used, stat) == 450
    limit.write_text("max\n")
    assert memory._left(limit, used, stat) > 1 << 60
    assert memory._left(tmp_path / "absent", used, stat) > 1 << 60
