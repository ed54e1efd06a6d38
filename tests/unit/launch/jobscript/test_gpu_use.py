import os
import subprocess
from pathlib import Path

from tests.unit.launch.examples import SPEC
from toolkit.launch.jobscript.script import GPU_FILE, GPU_SECONDS
from toolkit.render import render
from toolkit.study.gpuuse import median_use

_FAKE = """#!/bin/bash
echo "2026/11/26 05:00:00.000, 0, 90, 1024"
echo "2026/11/26 05:00:00.000, 1, [N/A], 0"
echo "$@" >&2
printf '%s\\n' "$@" > words
printf '2026/11/26 05:00:30.000, 0, 7'
"""


def ran(folder, **env):
    text = render("slurm", "parts/gpus.sh.j2", {"gpu_file": GPU_FILE, "gpu_seconds": GPU_SECONDS})
    paths = {"PATH": f"{folder / 'bin'}:{os.environ['PATH']}"}
    subprocess.run(["bash", "-uc", f"{text}\nwait"], cwd=folder, env={**paths, **env}, check=True)


def test_the_job_records_the_use_of_its_own_gpus(tmp_path):
    (tmp_path / "bin").mkdir()
    fake = tmp_path / "bin/nvidia-smi"
    fake.write_text(_FAKE)
    fake.chmod(0o755)
    ran(tmp_path, CUDA_VISIBLE_DEVICES="2,3")
    assert median_use((tmp_path / GPU_FILE).read_bytes()) == 0.9
    assert "--id=2,3" in (tmp_path / "words").read_text().splitlines()
    ran(tmp_path)
    assert "--id" not in (tmp_path / "words").read_text()


def test_a_node_without_nvidia_smi_records_nothing(tmp_path):
    (tmp_path / "bin").mkdir()
    text = render("slurm", "parts/gpus.sh.j2", {"gpu_file": GPU_FILE, "gpu_seconds": GPU_SECONDS})
    subprocess.run(["/bin/bash", "-uc", text], cwd=tmp_path, env={"PATH": str(tmp_path / "bin")}, check=True)
    assert not (tmp_path / GPU_FILE).exists()


def test_without_a_figure_the_use_is_unknown():
    assert median_use(b"") is None
    assert median_use(b"\xff, 0, [N/A], 0\n") is None


def test_the_record_ends_with_the_job_script(tmp_path):
    (tmp_path / "bin").mkdir()
    fake = tmp_path / "bin/nvidia-smi"
    fake.write_text("#!/bin/bash\necho $$ > number\nexec sleep 60\n")
    fake.chmod(0o755)
    values = {"spec": SPEC, "folder": str(tmp_path), "gpu_file": GPU_FILE, "gpu_seconds": GPU_SECONDS}
    values |= {"may_resume": False, "secrets": ()}
    text = render("slurm", "parts/folder.sh.j2", values) + render("slurm", "parts/gpus.sh.j2", values)
    script = f"{text}\nuntil [ -s number ]; do :; done"
    paths = {"PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"}
    subprocess.run(["bash", "-uc", script], cwd=tmp_path, env=paths, check=True, timeout=30)
    assert (tmp_path / "exit-code").read_text() == "0\n"
    # The process may still be a zombie, whose parent has not read its exit status.
    state = Path(f"/proc/{(tmp_path / 'number').read_text().strip()}/stat")
    assert not state.exists() or state.read_text().split()[2] == "Z"
