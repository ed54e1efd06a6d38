"""Test which variables an image's scripts set, and which values only a shell can compute."""

from tests.unit.image.sifs import sandbox
from tests.unit.tables import every_row
from toolkit.image.files.config import BEGINNING
from toolkit.image.files.folder import FolderTree
from toolkit.image.loader.scripts import driver_searched, environment

OLD = 'export LD_LIBRARY_PATH="${LD_LIBRARY_PATH:-"/old"}"\nexport PATH="/bin"\n'

SPACK = """\
export PATH=/view/bin:$PATH;
export OMPI_MCA_btl=^openib;
export LD_LIBRARY_PATH=/view/lib;
return
export PATH=/never;
"""


def read(root, script, before=OLD, given=None, **files):
    env = "/.singularity.d/env"
    scripts = {f"{env}/10-docker2singularity.sh": before, f"{env}/90-environment.sh": script}
    return environment(FolderTree(sandbox(root, {**scripts, **files})), given)


@every_row(
    ("script", "name", "value"),
    [
        ('export D=/m\nexport PATH="$D/bin:$PATH"\n', "PATH", "/m/bin:/bin"),
        ('D=/m\nexport LD_LIBRARY_PATH="${D}/lib:$LD_LIBRARY_PATH"', "LD_LIBRARY_PATH", "/m/lib:/old"),
        ("LD_LIBRARY_PATH=/m/lib:$LD_LIBRARY_PATH\nexport LD_LIBRARY_PATH", "LD_LIBRARY_PATH", "/m/lib:/old"),
        ("LD_LIBRARY_PATH=/m/lib", "LD_LIBRARY_PATH", "/m/lib"),  # exported by Apptainer's last script
        ("export A=1 PATH=/m:$PATH B=2", "PATH", "/m:/bin"),
        ("true; export PATH=/m:$PATH", "PATH", "/m:/bin"),
        ("export A=1 && export PATH=/m", "PATH", "/m"),
        ("export PATH=/m # mine", "PATH", "/m"),
        ("export PATH=/m#1", "PATH", "/m#1"),
        ("export LD_LIBRARY_PATH=/m${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}", "LD_LIBRARY_PATH", "/m:/old"),
        ("unset LD_LIBRARY_PATH; export LD_LIBRARY_PATH=/m${LD_LIBRARY_PATH:+:x}", "LD_LIBRARY_PATH", "/m"),
        ("export PYTHONPATH=/m:$PYTHONPATH", "PYTHONPATH", "/m:"),
        ("export A=${B:-${C-'d e'}}", "A", "d e"),
        ("export A=a\\\nb", "A", "ab"),
        ("export A='$B' B=\"\\$C\" C=a\\ b", "A", "$B"),
        ('export A="\\$C\'\\""', "A", "$C'\""),
        ("set -a\nA=1", "A", "1"),
        ("PATH=$PATH:/m\nPATH+=:/n", "PATH", "/bin:/m:/n"),
        ("[ -f /no/init.sh ] && . /no/init.sh", "PATH", "/bin"),
        ("echo hello; export A=1\nexit\nexport A=2", "A", "1"),
        (". /init.sh\nexport PATH=/m", "PATH", "/m"),
        ("[ -r /init.sh ] && . /init.sh", "PATH", "/bin"),
        ("[ -f /spack.sh ] && . /spack.sh; export B=1", "PATH", "/view/bin:/bin"),
        ("source /spack.sh\nexport PATH=/m:$PATH", "PATH", "/m:/view/bin:/bin"),
        ("D=/; . ${D}spack.sh", "LD_LIBRARY_PATH", "/view/lib"),
        (". /spack.sh", "OMPI_MCA_btl", "^openib"),
        (". /spack.sh\nexport A=1", "A", "1"),
        ("for module in a b; do echo $module; done; case $A in a) ;; esac", "PATH", "/bin"),
    ],
)
def test_a_script_sets_what_a_shell_would(tmp_path, script, name, value):
    found = read(tmp_path, script, **{"/init.sh": "", "/spack.sh": SPACK})
    assert found.values[name] == value
    assert name not in found.undecided


@every_row(
    ("script", "name", "value"),
    [
        ("export PATH=$HOME/bin:/m", "PATH", "/m"),
        ("D=$HOME/x\nexport PATH=$D/bin:/m", "PATH", "/m"),
        ("export PATH=$(mpi-dir)/bin:$PATH", "PATH", "/bin"),
        ("export PATH=`mpi-dir`/bin:$PATH", "PATH", "/bin"),
        ("export PATH=${PATH%:*}:/m", "PATH", "/m"),
        (". /init.sh", "PATH", "/bin"),
        ("source /init.sh", "LD_LIBRARY_PATH", "/old"),
        ("module load mpi; export PATH=/m:$PATH", "PATH", "/m:/bin"),
        ('eval "$(conda shell.posix hook)"', "PATH", "/bin"),
        ("$(lmod load mpi)", "PATH", "/bin"),
        ("if [ -d /m ]; then\n  export PATH=/m:$PATH\nfi", "PATH", "/m:/bin"),
        ("[ -d /m ] && export PATH=/m:$PATH", "PATH", "/m:/bin"),
        ("set_up() {\n  export PATH=/m:$PATH\n}\n(export B=1)", "PATH", "/m:/bin"),
        ("[ -n x ] && unset LD_LIBRARY_PATH", "LD_LIBRARY_PATH", "/old"),
        ("export OMPI_MCA_btl=$BTL", "OMPI_MCA_btl", None),
        (f"export A={'${A:-' * 40}", "A", None),
        ("export A=${/} B=$?", "A", None),
    ],
)
def test_what_only_a_shell_can_tell_is_told_apart(tmp_path, script, name, value):
    found = read(tmp_path, script, **{"/init.sh": "init() {\n  PATH=/m\n}\ninit\n"})
    assert "90-environment.sh" in found.undecided[name]
    assert found.values.get(name) == value


def test_what_a_script_reads_that_itself_runs_something_is_told_apart(tmp_path):
    files = {"/a.sh": ". /b.sh\n", "/b.sh": "export PATH=/m:$PATH\nmodule load mpi\n"}
    found = read(tmp_path, ". /a.sh", **files)
    assert found.values["PATH"] == "/m:/bin"
    assert found.undecided["PATH"].startswith("/b.sh runs module load mpi")


def test_scripts_that_read_each_other_come_to_an_end(tmp_path):
    found = read(tmp_path, ". /a.sh", **{"/a.sh": ". /b.sh\n", "/b.sh": ". /a.sh\nexport A=1\n"})
    assert found.values["A"] == "1"
    assert "PATH" in found.undecided


def test_a_script_that_ends_the_shell_ends_those_that_read_it(tmp_path):
    found = read(tmp_path, ". /a.sh\nexport A=2", **{"/a.sh": "export A=1\nexit 0\n"})
    assert found.values["A"] == "1"


CONDA = {
    "/opt/conda/etc/profile.d/conda.sh": "conda() {\n  eval x\n}\n",
    "/opt/conda/bin/activate": "_conda() {\n  eval x\n}\n",
    "/opt/conda/conda-meta/history": "",
    "/opt/conda/envs/hpc/conda-meta/history": "",
    "/opt/conda/envs/hpc/etc/conda/activate.d/openmpi.sh": "export OMPI_MCA_pml=ob1\n",
    "/opt/conda/envs/hpc/etc/conda/activate.d/gcc.sh": "_tool() {\n  CC=x\n}\n_tool\n",
    "/venv/bin/activate": "deactivate () {\n  PATH=$OLD\n}\n",
    "/venv/pyvenv.cfg": "home = /usr/bin\n",
}
HPC = "/opt/conda/envs/hpc/bin"
HOOK = ". /opt/conda/etc/profile.d/conda.sh\n"


@every_row(
    ("script", "path", "more"),
    [
        (f"{HOOK}conda activate hpc", f"{HPC}:/opt/conda/condabin:/bin", {"OMPI_MCA_pml": "ob1"}),
        (f"{HOOK}conda activate", "/opt/conda/bin:/opt/conda/condabin:/bin", {"CONDA_PREFIX": "/opt/conda"}),
        ("source /opt/conda/bin/activate hpc", f"{HPC}:/bin", {}),
        ("D=/opt/conda; . $D/bin/activate $D/envs/hpc", f"{HPC}:/bin", {}),
        (". /venv/bin/activate", "/venv/bin:/bin", {"VIRTUAL_ENV": "/venv"}),
    ],
)  # fmt: skip
def test_activating_an_environment_puts_it_before_the_rest(tmp_path, script, path, more):
    found = read(tmp_path, script, **CONDA)
    assert found.values["PATH"] == path
    assert found.values["LD_LIBRARY_PATH"] == "/old"
    assert more.items() <= found.values.items()
    assert found.undecided == {}


@every_row("script", ["conda activate hpc", f"{HOOK}conda activate other", f"{HOOK}conda activate $NAME"])
def test_an_environment_that_is_not_told_leaves_the_folders_unknown(tmp_path, script):
    assert "conda activate" in read(tmp_path, script, **CONDA).undecided["PATH"]


def test_variables_that_conda_keeps_for_an_environment_leave_the_folders_unknown(tmp_path):
    kept = {"/opt/conda/envs/hpc/conda-meta/state": '{"env_vars": {"LD_LIBRARY_PATH": "/x"}}'}
    assert "LD_LIBRARY_PATH" in read(tmp_path, f"{HOOK}conda activate hpc", **CONDA, **kept).undecided


def test_a_script_of_an_environment_that_sets_folders_in_a_function_leaves_them_unknown(tmp_path):
    script = "/opt/conda/envs/hpc/etc/conda/activate.d/z.sh"
    files = {**CONDA, script: "f() {\n  export LD_LIBRARY_PATH=/x\n}\nf\n"}
    assert script in read(tmp_path, f"{HOOK}conda activate hpc", **files).undecided["LD_LIBRARY_PATH"]


def test_scripts_of_the_runtime_itself_tell_nothing(tmp_path):
    apps = {"/.singularity.d/env/95-apps.sh": 'if [ -n "$APP" ]; then . "$APP/env"; fi\n'}
    assert read(tmp_path, "", before="", **apps) == read(tmp_path, "", before="")


def test_what_the_configuration_sets_is_put_in(tmp_path):
    found = read(tmp_path, "export LD_LIBRARY_PATH=$MPI_HOME/lib", before="", given={"MPI_HOME": "/m"})
    assert found.values == {"LD_LIBRARY_PATH": "/m/lib", "MPI_HOME": "/m", "PATH": BEGINNING}


@every_row(
    ("script", "path"),
    [
        ('export PATH="/a\\d:/bin"\nexport PATH=/x:$PATH\n', "/x:/a\\d:/bin"),
        ("export PATH='/a\\1'\nexport PATH=\"/x:${PATH}\"\n", "/x:/a\\1"),
    ],
)
def test_backslashes_in_a_variable_are_text(tmp_path, script, path):
    assert read(tmp_path, script).values["PATH"] == path


def test_a_variable_that_doubles_itself_stays_within_bounds(tmp_path):
    script = "export PATH=/x\n" + "export PATH=$PATH:$PATH\n" * 64
    assert len(read(tmp_path, script).values["PATH"]) < 10_000


def test_the_script_that_leads_programs_to_the_driver_is_looked_for(tmp_path):
    env, line = "/.singularity.d/env", "export LD_LIBRARY_PATH=$LD_LIBRARY_PATH:/.singularity.d/libs\n"
    cases = {
        "none": ({}, False),
        "other": ({f"{env}/90-environment.sh": "export A=1\n"}, False),
        "apptainer": ({f"{env}/99-base.sh": line}, True),
        "singularity": ({f"{env}/99-runtimevars.sh": line}, True),
    }
    for name, (files, wanted) in cases.items():
        tree = FolderTree(sandbox(tmp_path / name, {"/bin/sh": "#!", **files}))
        assert driver_searched(tree) is wanted, name


SOURCES = 'for f in /x/*.sh; do . "$f"; done\n'


def test_loops_of_scripts_that_source_each_other_end(tmp_path):
    files = {"/a.sh": f". /b.sh\n{SOURCES}", "/b.sh": ". /a.sh\n", "/x/c.sh": "export C=1\n"}
    found = read(tmp_path, f". /a.sh\n{SOURCES * 40}", **files)
    assert "PATH" in found.values  # neither a RecursionError nor exponential time


def test_a_loop_over_many_files_or_names_with_blanks_is_not_lost(tmp_path):
    named = read(tmp_path / "a", SOURCES, **{"/x/a b.sh": "export S=1\n"})
    assert named.values["S"] == "1"
    many = {f"/x/{n}.sh": f"export N{n}=1\n" for n in range(20)}
    found = read(tmp_path / "b", SOURCES, **many)
    assert not {"N0", "N19"} & set(found.values)
    assert "PATH" in found.undecided
