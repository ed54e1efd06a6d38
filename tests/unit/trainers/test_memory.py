"""Test the memory use of this process, and the memory that it can still allocate."""

from tests.unit.tables import every_row
from toolkit.trainers.training import memory


def test_this_process_has_some_memory_and_may_take_some():
    assert 1 << 20 < memory.resident() < 1 << 36
    assert memory.available() > 1 << 20


def test_a_cgroup_has_left_what_it_did_not_use_and_the_cache_of_files(tmp_path):
    limit, used, stat = (tmp_path / name for name in ("max", "current", "stat"))
    used.write_text("700\n")
    stat.write_text("anon 500\ninactive_file 150\n")
    limit.write_text("1000\n")
    assert memory._free_bytes(limit, used, stat) == 450
    limit.write_text("max\n")
    assert memory._free_bytes(limit, used, stat) > 1 << 60
    assert memory._free_bytes(tmp_path / "absent", used, stat) > 1 << 60


def limited(folder, limit, *, first=False):
    """Create a cgroup folder with the limit in bytes; 100 bytes are used, 10 of them by the file cache."""
    names = ("memory.limit_in_bytes", "memory.usage_in_bytes") if first else ("memory.max", "memory.current")
    folder.mkdir(parents=True, exist_ok=True)
    for name, value in zip(names, (limit, 100), strict=True):
        (folder / name).write_text(f"{value}\n")
    (folder / "memory.stat").write_text("inactive_file 0\ntotal_inactive_file 10\n")


@every_row(
    ("lines", "top"),
    [
        ("0::/slurm/job_7/step_0\n", ""),
        ("5:cpu,memory:/slurm/job_7/step_0\n1:name=systemd:/x\n0::/\n", "memory"),
        ("0::/slurm/job_7/step_0\n", "unified"),
    ],
)
def test_the_least_limit_from_the_own_cgroup_upwards_counts(tmp_path, lines, top):
    own, root = tmp_path / "cgroup", tmp_path / "sys"
    own.write_text(lines)
    limited(root / top / "slurm/job_7/step_0", "9223372036854771712", first=top == "memory")
    limited(root / top / "slurm/job_7", 1000, first=top == "memory")
    limited(root / top / "slurm/job_8", 150, first=top == "memory")
    assert memory.left_in_cgroups(own, root) == 910
    limited(root / top / "slurm/job_7/step_0", 400, first=top == "memory")
    assert memory.left_in_cgroups(own, root) == 310


def test_a_container_with_a_root_of_its_own_has_its_limit_there(tmp_path):
    own, root = tmp_path / "cgroup", tmp_path / "sys"
    limited(root, 500)
    for path in ("/", "/../other", "/docker/0123"):
        own.write_text(f"0::{path}\n")
        assert memory.left_in_cgroups(own, root) == 410
    own.unlink()
    assert memory.left_in_cgroups(own, root) == 410
