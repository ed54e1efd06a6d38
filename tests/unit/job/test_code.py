"""Test how toolkit prepares a user's program: command, start folder, copied files, and the check of its
ranks.
"""

import os
import subprocess

import pytest

from tests.unit.tables import every_row
from toolkit.errors import BadInput, CheckFailed
from toolkit.job.project.code import code_of, copy_project, start_here, with_start_folder
from toolkit.job.project.ranks import check_ranks
from toolkit.job.request.flags import Flags
from toolkit.job.request.layering import merge_request
from toolkit.launch.request.copies import in_own_folders
from toolkit.launch.request.specify import JobPaths, specify
from toolkit.model.progress import Silent
from toolkit.program.command import read_command

ALONE = "import tensorflow as tf\ntf.keras.Sequential().fit()\n"
JOINED = "import horovod.keras as hvd\nhvd.init()\n"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    for variable in ("XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(variable, str(tmp_path / "elsewhere"))
    here = tmp_path / "work"
    here.mkdir()
    monkeypatch.chdir(here)
    (here / "alone.py").write_text(ALONE)
    (here / "joined.py").write_text(JOINED)
    (here / "sub").mkdir()
    (here / "sub" / "deep.py").write_text("import net\n")
    (here / "sub" / "net.py").write_text(JOINED)
    (here / "pkg").mkdir()
    (here / "pkg" / "__main__.py").write_text(JOINED)
    return here


def job_of(*words, file=None, **said):
    given = {"image": "my.sif", **said}
    return merge_request(given | ({"trainer": file} if file else {}), words).job


def test_what_links_of_the_start_folder_point_to_is_mounted(folder, tmp_path):
    (tmp_path / "scratch" / "mnist").mkdir(parents=True)
    (folder / "data").symlink_to(tmp_path / "scratch" / "mnist")
    (folder / "gone").symlink_to(tmp_path / "scratch" / "cifar")
    (folder / "inside").symlink_to("pkg")
    (folder / "tool").symlink_to("/usr/bin/env")
    job = job_of("python", "joined.py")
    assert start_here(code_of(job, Flags()), job) == (
        str(folder),
        (str(folder), f"{tmp_path}/scratch/mnist"),
    )


def test_the_folder_of_a_file_that_is_read_elsewhere_is_mounted(folder, tmp_path):
    (tmp_path / "table").mkdir()
    (tmp_path / "table" / "a.csv").write_text("1\n")
    (folder / "reads.py").write_text("print(open('../table/a.csv').read())\n")
    job = job_of("python", "reads.py")
    assert f"{tmp_path}/table" in start_here(code_of(job, Flags()), job)[1]


def test_a_file_that_defines_no_trainer_runs_with_the_users_words_alone(folder):
    job = job_of("--epochs", "5", file="alone.py")
    assert (job.trainer, job.command) == (None, ("python", "alone.py", "--epochs", "5"))
    assert job.name == "alone"
    assert job.warning is None
    (folder / "mine.py").write_text("from toolkit.trainers.command import run\nrun(TRAINER)\n")
    assert job_of("--epochs", "5", file="mine.py").trainer == "mine.py"


@every_row("option", ["strategy"])
def test_an_option_of_trainers_is_refused_with_a_plain_script(option):
    with pytest.raises(BadInput, match=f"--{option}: this option is for trainers, but") as error:
        job_of(file="alone.py", **{option: "single"})
    assert f"toolkit launch alone.py -- --{option}" in error.value.fix


def test_a_job_of_this_machine_starts_in_the_current_folder(folder):
    job = job_of("python", "alone.py")
    places = with_start_folder(JobPaths("/run/x", "/i.sif"), code_of(job, Flags()), job, None, remote=False)
    spec = specify(job, places)
    assert spec.workdir == str(folder)
    assert spec.binds == ("/run/x", str(folder))
    assert spec.command == ("python", "alone.py")


def test_a_folder_that_an_image_has_too_is_not_mounted_over_it(monkeypatch):
    monkeypatch.chdir("/usr")
    job = job_of("hostname")
    assert start_here(code_of(job, Flags()), job) == ("", ())


def test_workdir_of_the_user_wins(folder):
    job = job_of("python", "alone.py", workdir="/there")
    places = with_start_folder(JobPaths("/run/x", "/i.sif"), code_of(job, Flags()), job, None, remote=False)
    assert specify(job, places).workdir == "/there"


@every_row(
    ("words", "travels"),
    [
        (("python", "alone.py"), True),
        (("python", "-m", "pkg"), True),
        (("python", "-c", "import joined"), True),
        (("sh", "-c", "python joined.py"), True),
        (("solver", "--input=alone.py"), True),
        (("hostname",), False),
        (("python", "-c", "print(1)"), False),
        (("python", "/opt/app/main.py"), False),
    ],
)
def test_a_project_travels_if_the_command_names_something_of_it(words, travels):
    code = code_of(job_of(*words), Flags())
    assert (copy_project(code, Flags(), "/big", Silent()) is not None) is travels


def test_options_decide_what_travels(folder):
    code = code_of(job_of("hostname"), Flags(project="sub"))
    found = copy_project(code, Flags(project="sub"), "/big", Silent())
    assert found is not None
    assert found.parcel.target.startswith("/big/projects/sub-")
    assert found.start == "project"
    code = code_of(job_of("python", "alone.py"), Flags(sync=False))
    assert copy_project(code, Flags(sync=False), "/big", Silent()) is None
    with pytest.raises(BadInput, match="no such folder"):
        code_of(job_of("hostname"), Flags(project="none"))


def test_the_folder_of_a_script_is_its_project_unless_the_current_one_is_marked(folder):
    job = job_of(file="sub/deep.py")
    code = code_of(job, Flags())
    found = copy_project(code, Flags(), "/big", Silent())
    assert (code.root, found.command, found.start) == (folder / "sub", ("python", "deep.py"), "project")
    (folder / "pyproject.toml").write_text("")
    code = code_of(job, Flags())
    assert code.root == folder
    assert copy_project(code, Flags(), "/big", Silent()).command == ("python", "sub/deep.py")


def test_a_file_that_stays_and_is_named_is_an_error(folder):
    (folder / ".gitignore").write_text("*.csv\n")
    (folder / "data.csv").write_text("1")
    code = code_of(job_of("python", "alone.py", "data.csv"), Flags())
    with pytest.raises(
        BadInput, match=r"data\.csv is not copied to the cluster: an ignore pattern of the project"
    ) as error:
        copy_project(code, Flags(), "/big", Silent())
    assert "!data.csv" in error.value.fix


def test_data_of_a_command_are_mounted_and_named_by_a_variable():
    job = job_of("python", "alone.py")
    spec = specify(job, JobPaths("/run/x", "/i.sif", data="/big/data/mnist"))
    assert spec.binds == ("/run/x", "/big/data/mnist:/big/data/mnist:ro")
    assert spec.env == {"TOOLKIT_DATA": "/big/data/mnist"}
    assert spec.command == ("python", "alone.py")


def test_the_home_folder_does_not_travel(folder, monkeypatch):
    monkeypatch.setenv("HOME", str(folder))
    code = code_of(job_of("python", "alone.py"), Flags())
    with pytest.raises(BadInput, match="neither your home folder nor /"):
        copy_project(code, Flags(), "/big", Silent())


def test_several_ranks_of_a_program_that_joins_none_are_refused():
    job = job_of("python", "alone.py", nodes=2, ranks_per_node=4)
    with pytest.raises(CheckFailed, match=r"alone\.py never joins its ranks: 8 copies") as error:
        check_ranks(job, code_of(job, Flags()), Flags())
    assert "--copies" in error.value.fix
    assert "`toolkit adapt alone.py` to join the ranks" in error.value.fix


def test_adapt_is_offered_for_scripts_that_it_can_read(folder):
    (folder / "plain.py").write_text("print(1)\n")
    job = job_of("python", "plain.py", nodes=2)
    with pytest.raises(CheckFailed, match="never joins its ranks") as error:
        check_ranks(job, code_of(job, Flags()), Flags())
    assert "adapt" not in error.value.fix


@every_row(
    ("words", "said", "flags"),
    [
        (("python", "alone.py"), {}, Flags()),
        (("python", "alone.py"), {"nodes": 2}, Flags(copies=True)),
        (("python", "alone.py"), {"nodes": 2}, Flags(force=True)),
        (("python", "joined.py"), {"nodes": 2}, Flags()),
        (("python", "sub/deep.py"), {"nodes": 2}, Flags()),
        (("python", "/elsewhere/x.py"), {"nodes": 2}, Flags()),
        (("hostname",), {"nodes": 2}, Flags()),
    ],
)
def test_what_is_meant_joins_or_is_unknown_may_start(words, said, flags):
    job = job_of(*words, **said)
    check_ranks(job, code_of(job, flags), flags)


@every_row(
    "words", [("python3", "who.py", "data.txt"), ("sh", "run.sh"), ("./run.sh",), ("python3", "-m", "who")]
)
def test_copies_have_a_number_and_a_folder_each_and_find_the_files_of_the_command(folder, tmp_path, words):
    (folder / "who.py").write_text("import os, net\nprint(os.environ['TOOLKIT_COPY'], os.getcwd(), net.x)\n")
    (folder / "net.py").write_text("import sys\nx = len([open(name) for name in sys.argv[1:]])\n")
    (folder / "data.txt").write_text("")
    (folder / "run.sh").write_text('#!/bin/sh\nexec python3 "$TOOLKIT_START_DIR/who.py" "$0"\n')
    (folder / "run.sh").chmod(0o755)
    job = job_of(*words, ranks_per_node=2)
    code = code_of(job, Flags())
    spec = specify(job, with_start_folder(JobPaths("/run/x", "/i.sif"), code, job, None, remote=False))
    env = {"PATH": os.environ["PATH"], "TOOLKIT_JOB_DIR": str(tmp_path), "SLURM_PROCID": "1"}
    command = in_own_folders(spec).command
    done = subprocess.run(command, env=env, cwd=folder, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["1", str(tmp_path / "copy-1"), "0" if "-m" in words else "1"]


COMMANDS = {
    "python alone.py": (True, ""),
    "env A=1 python3.11 -u -X dev alone.py": (True, ""),
    "python -m pkg": (False, "horovod"),
    "python -um torch.distributed.run x.py": (False, "torchrun"),
    "torchrun --nproc-per-node 2 x.py": (False, "torchrun"),
    "accelerate launch x.py": (False, "accelerate"),
    "horovodrun -np 2 python x.py": (False, "horovod"),
    "sh -c 'cd sub && python3 deep.py'": (False, "horovod"),
    "bash run.sh": (True, ""),
    "bash ranks.sh": (None, ""),
    "python none.py": (None, ""),
    "./solver": (None, ""),
}


@every_row("line", COMMANDS)
def test_the_program_of_a_command(folder, line):
    import shlex

    (folder / "run.sh").write_text(
        "#!/bin/sh\nset -e\n# python joined.py\npython alone.py --x \\\n  1 | tee out\n"
    )
    (folder / "ranks.sh").write_text("python alone.py --rank $SLURM_PROCID\n")
    facts = read_command(shlex.split(line), folder)
    assert (facts.serial, " ".join(facts.joins)) == COMMANDS[line]


@every_row("words", [("python", "x" * 6000), ("bash", "x" * 6000), ("x" * 6000 + ".py",)])
def test_a_name_that_is_too_long_is_no_file(folder, words):
    job = job_of(*words, nodes=2)
    code = code_of(job, Flags())
    assert code.facts.serial is None
    assert copy_project(code, Flags(), "/big", Silent()) is None


def test_a_project_with_a_name_that_is_too_long_is_refused():
    with pytest.raises(BadInput, match="no such folder"):
        code_of(job_of("hostname"), Flags(project="x" * 6000))
