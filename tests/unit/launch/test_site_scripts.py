"""Test that each shipped site has a golden job script that shells accept."""

import re
import shutil
import subprocess

from tests.unit.launch.scripts import run
from tests.unit.launch.site_scripts import FOLDER, made, names, site_of
from tests.unit.tables import every_row
from toolkit.model.jobfile import JobFile


def test_every_site_has_its_script_and_no_other_is_kept():
    assert len(names()) >= 10
    assert sorted(file.stem for file in FOLDER.glob("*.sh")) == names()


@every_row("name", names())
def test_the_script_of_a_site_is_the_one_that_was_read(name):
    assert made(name) == (FOLDER / f"{name}.sh").read_text()


@every_row("name", names())
def test_shells_take_it(name):
    subprocess.run(["bash", "-n", FOLDER / f"{name}.sh"], check=True)


def test_shellcheck_finds_no_fault_in_them():
    files = [FOLDER / f"{name}.sh" for name in names()]
    subprocess.run([shutil.which("shellcheck") or "shellcheck", *files], check=True)


@every_row("name", names())
def test_it_starts_its_ranks_where_the_variables_of_the_site_are_set(name, tmp_path):
    folder = tmp_path / "place"
    folder.mkdir()
    variables = ("HOME", "WORK", "PROJECT", "SCRATCH", "CRAY_LD_LIBRARY_PATH", "LD_LIBRARY_PATH")
    (tmp_path / "bin").mkdir()
    for command in ("apptainer", "podman-hpc"):
        (tmp_path / "bin" / command).write_text("")
        (tmp_path / "bin" / command).chmod(0o755)
    script = "module() { return 0; }\n" + made(name)
    ran = run(script, tmp_path, **dict.fromkeys(variables, str(folder)))
    assert ran.status == 0, ran.said
    starts = [call for call in ran.calls if call[0] in {"srun", "mpiexec", "mpirun"}]
    assert len(starts) == 2
    assert any("tf2.15-cpu" in word or word.startswith("--environment=") for word in starts[1])
    assert "toolkit.trainers.preflight" in starts[0]
    assert "toolkit.trainers.mnist" in starts[1]
    assert not any("$" in word for call in starts for word in call)


def test_only_the_script_that_nobody_could_try_says_so():
    said = [name for name in names() if "NEVER RUN" in (FOLDER / f"{name}.sh").read_text()]
    assert said == ["aurora", "daint", "perlmutter", "polaris"]


@every_row("name", names())
def test_who_asks_for_gpus_gets_a_partition_with_gpus(name):
    site = site_of(name)
    if not any(partition.gpus for partition in site.partitions):
        return
    asks_for_them = site.gpus.ask not in {"partition", "constraint"}
    for gpus in {1, max(partition.gpus or 0 for partition in site.partitions)}:
        script = made(name, JobFile(gpus_per_node=gpus, account="train"))
        queue = re.search(r"^#(?:SBATCH --partition=|PBS -q )(\S+)", script, re.MULTILINE)
        assert queue is not None
        assert site.partition(queue.group(1)).gpus >= gpus
        assert re.search(rf"^#SBATCH --g(?:res|pus).*[:=]{gpus}$", script, re.MULTILINE) or not asks_for_them
