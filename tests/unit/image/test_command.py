"""Test which program a command starts in an image, and which MPI the program loads."""

from tests.unit.image.sifs import elf, sandbox
from tests.unit.image.test_inspect import BASE
from tests.unit.image.test_mpi import OMPI
from tests.unit.tables import every_row
from toolkit.image.inspect import inspect
from toolkit.model.rank import RankView

MPICH = b"MPIR_x\0MPICH\0PMI_FD\0"
SITE = "/opt/venv/lib/python3.11/site-packages"
IN_TMP = "/tmp/sw"
FILES = {
    "/usr/lib/libmpi.so.40": elf(soname="libmpi.so.40", text=OMPI),
    "/opt/mpich/lib/libmpi.so.12": elf(soname="libmpi.so.12", text=MPICH),
    "/opt/tools/bin/a": elf(needed=("libmpi.so.40",)),
    "/opt/tools/bin/b": elf(needed=("libmpi.so.40",)),
    "/opt/app/bin/solver": elf(needed=("libmpi.so.12",), runpath="/opt/mpich/lib"),
    "/opt/app/bin/bare": elf(needed=("libmpi.so.12",)),
    "/opt/app/bin/serial": elf(),
    "/opt/app/bin/static": elf(text=MPICH + b"MPIDI_x\0"),
    "/opt/venv/bin/python3": elf(),
    "/bin/sh": elf(),
    f"{SITE}/mpi4py/MPI.cpython-311.so": elf(needed=("libmpi.so.12",), runpath="/opt/mpich/lib"),
    "/opt/app/run.sh": "#!/bin/sh\nset -e\nAPP=/opt/app\nexport LD_LIBRARY_PATH=/opt/mpich/lib\n"
    'mkdir -p out\nexec "$APP"/bin/bare --fast "$@"\n',
    "/opt/app/entry.sh": '#!/bin/sh\nexport LD_LIBRARY_PATH=/opt/mpich/lib\nexec "$@"\n',
    "/opt/app/choose.sh": "#!/bin/sh\nif [ $1 = a ]; then\n  exec /opt/tools/bin/a\nfi\n"
    "exec /opt/app/bin/solver\n",
    "/opt/app/both.sh": "#!/bin/sh\n/opt/tools/bin/a\n/opt/app/bin/solver\n",
    "/opt/app/train.py": "#!/opt/venv/bin/python3\nfrom mpi4py import MPI\n",
    "/opt/app/plain.py": "#!/opt/venv/bin/python3\nimport math\n",
}
OPEN_MPI, OTHER = "openmpi", "mpich"


def facts_of(path, *command, script=None, hidden=(), **more):
    view = RankView(command=command, script=script, hidden=hidden)
    return inspect(sandbox(path, {**BASE, **FILES, **more}), view=view)


@every_row(
    ("command", "implementation", "program"),
    [
        (("/opt/tools/bin/a",), OPEN_MPI, "/opt/tools/bin/a"),
        (("/opt/app/bin/solver", "-n"), OTHER, "/opt/app/bin/solver"),
        (("env", "A=1", "/opt/app/bin/solver"), OTHER, "/opt/app/bin/solver"),
        (("env", "LD_LIBRARY_PATH=/opt/mpich/lib", "/opt/app/bin/bare"), OTHER, "/opt/app/bin/bare"),
        (("/opt/app/run.sh",), OTHER, "/opt/app/bin/bare"),
        (("/bin/sh", "/opt/app/run.sh"), OTHER, "/opt/app/bin/bare"),
        (("/bin/sh", "-c", "export A=1; exec /opt/app/bin/solver -n"), OTHER, "/opt/app/bin/solver"),
        (("/bin/sh", "-ec", "/opt/app/entry.sh /opt/app/bin/bare"), OTHER, "/opt/app/bin/bare"),
        (
            ("/bin/sh", "-c", "pushd /x; [[ a ]]; command -v a; /opt/app/bin/solver"),
            OTHER,
            "/opt/app/bin/solver",
        ),
        (("/bin/sh", "-c", "command /opt/app/bin/solver"), OTHER, "/opt/app/bin/solver"),
        (("/opt/app/entry.sh", "/opt/app/bin/bare"), OTHER, "/opt/app/bin/bare"),
        (("/opt/app/entry.sh", "/opt/tools/bin/b"), OPEN_MPI, "/opt/tools/bin/b"),
        (("/opt/app/train.py",), OTHER, "/opt/venv/bin/python3"),
        (("/opt/venv/bin/python3", "train.py"), OTHER, "/opt/venv/bin/python3"),
        (("/opt/venv/bin/python3", "-c", "import mpi4py.MPI"), OTHER, "/opt/venv/bin/python3"),
        (("/opt/venv/bin/python3", "-m", "mpi4py", "x.py"), OTHER, "/opt/venv/bin/python3"),
        (("/opt/app/bin/static",), OTHER, "/opt/app/bin/static"),
    ],
)
def test_the_facts_are_of_the_mpi_that_the_program_loads(tmp_path, command, implementation, program):
    facts = facts_of(tmp_path, *command)
    assert facts.mpi and facts.mpi.implementation == implementation
    assert facts.program and facts.program.path == program


def test_a_program_that_finds_its_mpi_by_a_script_alone_finds_none_without(tmp_path):
    assert facts_of(tmp_path, "/opt/app/bin/bare").programs == {"/opt/app/bin/bare": ""}


HERE = 'exec "$here"/bin/bare "$@"\n'
SETS = "export LD_LIBRARY_PATH=/opt/mpich/lib\n"


@every_row(
    "line",
    [
        'here=$(dirname "$0")',
        "here=$(dirname $(readlink -f $0))",
        'here=$(dirname -- "$(realpath "$0")")',
        'here="$(cd "$(dirname "$0")" && pwd)"',
        'here=$( cd -- "$( dirname -- "${BASH_SOURCE[0]}" )" &> /dev/null && pwd )',
        'here=$(cd "$(dirname "${BASH_SOURCE[0]}")/../app" && pwd -P)',
        "here=${0%/*}",
    ],
)
def test_a_script_finds_a_program_beside_itself(tmp_path, line):
    facts = facts_of(tmp_path, "/opt/app/own.sh", **{"/opt/app/own.sh": f"#!/bin/bash\n{line}\n{SETS}{HERE}"})
    assert facts.program and facts.program.path == "/opt/app/bin/bare"


@every_row(
    "option",
    [
        "--library-path /opt/mpich/lib",
        "--library-path=/opt/mpich/lib",
        "--argv0 x --library-path /opt/mpich/lib",
    ],
)
def test_the_loader_starts_a_program_with_its_own_folders(tmp_path, option):
    own = {
        "/opt/app/lib/ld-linux-x86-64.so.2": elf(),
        "/opt/run": f"#!/bin/sh\nexec /opt/app/lib/ld-linux-x86-64.so.2 {option} /opt/app/bin/bare\n",
    }
    assert facts_of(tmp_path, "/opt/run", **own).programs == {
        "/opt/app/bin/bare": "/opt/mpich/lib/libmpi.so.12"
    }


@every_row(
    ("words", "clears"),
    [
        ("-i A=1", "/opt/run"),
        ("- ", "/opt/run"),
        ("-u PMI_RANK", ""),
        ("-uPMI_RANK --unset=PMI_SIZE", ""),
        ("-C /opt", ""),
        ("-S", ""),
        ("A=1", ""),
    ],
)
def test_env_may_remove_the_variables_of_the_launcher(tmp_path, words, clears):
    text = f"#!/bin/sh\nexec env {words} /opt/app/bin/solver\n"
    program = facts_of(tmp_path, "/opt/run", **{"/opt/run": text}).program
    assert program and (program.path, program.clears) == ("/opt/app/bin/solver", clears)


BARE = "exec /opt/app/bin/bare"
SETS = "export LD_LIBRARY_PATH=/opt/mpich/lib\n"


def test_bash_reads_the_file_of_bash_env_before_a_script(tmp_path):
    files = {"/opt/start.sh": f"#!/bin/bash\n{BARE}\n", "/opt/site.sh": SETS, "/bin/bash": elf()}
    for shell, found in (("bash", True), ("sh", False)):
        started = {**files, "/opt/start.sh": f"#!/bin/{shell}\n{BARE}\n"}
        begin = {"/.singularity.d/env/90-environment.sh": "export BASH_ENV=/opt/site.sh\n"}
        facts = facts_of(tmp_path / shell, "/opt/start.sh", **started, **begin)
        assert (facts.mpi is not None and facts.mpi.implementation == OTHER) is found


@every_row(
    "loop",
    [
        'for f in "$P"/etc/activate.d/*.sh; do\n    . "$f"\ndone\n',
        "for f in /opt/env/etc/activate.d/*.sh; do [ -r $f ] && . $f; done\n",
        "for f in $P/etc/activate.d/*.sh\ndo\n  if [ -f ${f} ]; then\n    source ${f}\n  fi\ndone\n",
    ],
)
def test_a_loop_that_sources_files_is_followed(tmp_path, loop):
    script = {"/opt/start.sh": f"#!/bin/sh\nexport P=/opt/env\n{loop}{BARE}\n"}
    hook = {"/opt/env/etc/activate.d/mpi.sh": SETS, "/opt/env/etc/activate.d/note.txt": "text"}
    facts = facts_of(tmp_path, "/opt/start.sh", **script, **hook)
    assert facts.mpi.implementation == OTHER


@every_row(
    ("call", "filters"),
    [
        (
            "kept = {k: v for k, v in os.environ.items() if k != 'A'}\nos.execve(sys.executable, [], kept)",
            True,
        ),
        ("os.execvpe('a', ['a'], {k: v for k, v in os.environ.items() if k > 'B'})", True),
        ("more = {**os.environ, 'A': '1'}\nos.execve(sys.executable, [], more)", False),
        ("os.execv(sys.executable, [])", False),
    ],
)
def test_a_script_that_hands_on_some_of_its_variables_is_told(tmp_path, call, filters):
    text = f"#!/opt/venv/bin/python3\nimport os, sys\n{call}\nfrom mpi4py import MPI\n"
    program = facts_of(tmp_path, "/opt/app/again.py", **{"/opt/app/again.py": text}).program
    assert program.filters == ("/opt/app/again.py" if filters else "")


def test_arguments_of_a_script_are_no_options_of_its_shell(tmp_path):
    profile = {
        "/etc/profile": 'if a; then\n  b\nelse\n  PATH="/nowhere"\nfi\n',
        "/opt/run": "#!/bin/sh\nexec solver\n",
    }
    view = RankView(command=("/opt/run", "-lr", "0.1"))
    own = {"/usr/local/bin/solver": FILES["/opt/app/bin/solver"]}
    program = inspect(sandbox(tmp_path, {**BASE, **FILES, **profile, **own}), view=view).program
    assert program and program.path == "/usr/local/bin/solver"


def test_an_empty_word_in_a_script_is_no_program(tmp_path):
    text = "#!/bin/sh\nOPTIONS=\nexec sh $OPTIONS /opt/app/run.sh\n"
    assert facts_of(tmp_path, "/opt/run", **{"/opt/run": text}).unknown.get("program") is None


@every_row("first", ["#!/bin/bash -l", "#!/bin/bash --login"])
def test_a_login_shell_has_the_path_of_the_systems_profile(tmp_path, first):
    profile = 'if [ "$(id -u)" -eq 0 ]; then\n  PATH="/sbin"\nelse\n  PATH="/opt/tools/bin:/bin"\nfi\n'
    text = {"/opt/run": f"{first}\nexec a\n", "/etc/profile": profile, "/bin/bash": elf()}
    facts = facts_of(tmp_path, "/opt/run", **text)
    assert facts.program and facts.program.path == "/opt/tools/bin/a"


def test_a_preloaded_mpi_is_loaded_in_place_of_another_of_the_same_name(tmp_path):
    newer = {"/opt/newer/libmpi.so.40": elf(soname="libmpi.so.40", text=OMPI)}
    command = ("env", "LD_PRELOAD=/opt/newer/libmpi.so.40 /nowhere.so", "/opt/tools/bin/a")
    assert facts_of(tmp_path, *command, **newer).programs == {"/opt/tools/bin/a": "/opt/newer/libmpi.so.40"}


ONEAPI = "/opt/intel/oneapi"
INTEL = {
    f"{ONEAPI}/setvars.sh": "main() { for c in mpi; do . $c/latest/env/vars.sh; done; }\nmain\n",
    f"{ONEAPI}/mpi/latest/env/vars.sh": "prepend() { :; }\n",
    f"{ONEAPI}/mpi/latest/lib/libmpi.so.12": elf(soname="libmpi.so.12", text=MPICH),
    f"{ONEAPI}/mpi/latest/opt/mpi/libfabric/lib/prov/libtcp-fi.so": elf(),
}


@every_row(
    "source",
    [
        f"source {ONEAPI}/setvars.sh > /dev/null",
        f". {ONEAPI}/setvars.sh >/dev/null",
        f"source {ONEAPI}/mpi/latest/env/vars.sh",
    ],
)
def test_intels_scripts_set_the_folders_of_intels_mpi(tmp_path, source):
    text = f"#!/bin/bash\n{source}\nexec /opt/app/bin/bare\n"
    facts = facts_of(tmp_path, "/opt/run", **INTEL, **{"/opt/run": text})
    assert facts.programs == {"/opt/app/bin/bare": f"{ONEAPI}/mpi/latest/lib/libmpi.so.12"}
    assert facts.environment["I_MPI_ROOT"] == f"{ONEAPI}/mpi/latest"
    assert facts.environment["FI_PROVIDER_PATH"] == f"{ONEAPI}/mpi/latest/opt/mpi/libfabric/lib/prov:"


def test_a_script_that_toolkit_cannot_follow_leaves_the_library_unknown(tmp_path):
    text = "#!/bin/bash\nsource /opt/app/functions.sh\nexec /opt/app/bin/bare\n"
    more = {"/opt/run": text, "/opt/app/functions.sh": "find_mpi() {\n  :\n}\nfind_mpi\n"}
    facts = facts_of(tmp_path, "/opt/run", **more)
    assert "whose effect is known only at run time" in facts.unknown["programs"]


def test_without_a_command_a_program_is_started_as_the_images_script_starts_it(tmp_path):
    without = {name: content for name, content in FILES.items() if name != "/opt/app/run.sh"}
    script = {"/opt/app/bin/run": FILES["/opt/app/run.sh"]}
    found = inspect(sandbox(tmp_path / "with", {**BASE, **FILES, **script})).programs
    assert found["/opt/app/bin/bare"] == "/opt/mpich/lib/libmpi.so.12"
    assert inspect(sandbox(tmp_path / "without", {**BASE, **without})).programs["/opt/app/bin/bare"] == ""


def test_a_program_into_which_an_mpi_is_linked_is_its_own_library(tmp_path):
    facts = facts_of(tmp_path, "/opt/app/bin/static")
    assert facts.program and facts.program.linked
    assert facts.mpi and (facts.mpi.library, facts.mpi.interfaces) == ("/opt/app/bin/static", ("pmi1",))


@every_row("script", ["import math\n", "from mpi4py import MPI\n"])
def test_the_script_of_a_user_says_which_modules_are_imported(tmp_path, script):
    facts = facts_of(tmp_path, "/opt/venv/bin/python3", "train.py", script=script)
    assert (len(facts.programs) == 1) == ("mpi4py" in script)


@every_row(
    ("command", "why"),
    [
        (("/opt/app/choose.sh", "a"), "depends on conditions"),
        (("/opt/app/both.sh",), "depends on conditions"),
        (("/opt/app/nothing",), "not in the image"),
        (("train",), "not in the image"),
        (("./solver",), "not in the image"),
        (("/bin/sh", "-c", "/opt/tools/bin/a && /opt/app/bin/solver"), "depends on conditions"),
        (("/bin/sh",), "depends on conditions"),
    ],
)
def test_a_program_that_only_running_tells_is_unknown(tmp_path, command, why):
    facts = facts_of(tmp_path, *command)
    assert facts.program is None
    assert why in facts.unknown["program"]


def test_without_a_command_no_program_is_asked_for(tmp_path):
    facts = facts_of(tmp_path)
    assert facts.program is None
    assert "program" in facts.absent
    assert len(facts.programs) > 3


@every_row("hidden", [("/tmp",), ()])
def test_what_lies_below_a_mount_is_not_found_and_is_told(tmp_path, hidden):
    own = {
        f"{IN_TMP}/lib/libmpi.so.12": elf(soname="libmpi.so.12", text=MPICH),
        "/opt/probe": elf(needed=("libmpi.so.12",), runpath=f"{IN_TMP}/lib"),
    }
    facts = facts_of(tmp_path, "/opt/probe", hidden=hidden, **own)
    library = f"{IN_TMP}/lib/libmpi.so.12"
    assert facts.programs == {"/opt/probe": "" if hidden else library}
    assert facts.hidden == ({library: "/tmp"} if hidden else {})


@every_row(
    ("text", "sets"),
    [
        (
            '#!/bin/sh\nexport LD_LIBRARY_PATH=/opt/mpich/lib\nexec "$@"\n',
            {"LD_LIBRARY_PATH": "/opt/mpich/lib"},
        ),
        (
            '#!/bin/bash\nexport UCX_TLS=tcp\nif [ $# -eq 0 ]; then exec bash; else exec "$@"; fi\n',
            {"UCX_TLS": "tcp"},
        ),
        ("#!/bin/sh\nexport NAME=ann\nexec $@\n", {}),
        ('#!/bin/sh\nexport UCX_TLS=tcp\n"$@"\n', {}),
        ('#!/bin/sh\nif [ -n "$A" ]; then export UCX_TLS=tcp; fi\nexec "$@"\n', {}),
    ],
)
def test_what_an_entry_point_sets_before_its_arguments_is_a_fact(tmp_path, text, sets):
    run = "OCI_ENTRYPOINT='/opt/app/entry.sh'\nOCI_CMD='bash'\n"
    facts = facts_of(tmp_path, **{"/opt/app/entry.sh": text, "/.singularity.d/runscript": run})
    assert facts.entry_sets == sets
    assert facts.entrypoint == ("/opt/app/entry.sh", "bash")
