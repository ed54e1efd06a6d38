"""Test the probe script in every POSIX shell, in a hostile environment, and on real compute nodes."""

import json
import os
import shutil
import string
import time

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests import mounting
from tests.services.program import toolkit
from toolkit.data import shipped_folder
from toolkit.probe.answers import separate
from toolkit.probe.asking import NodeChoice, command
from toolkit.probe.bundle import load, read
from toolkit.probe.evidence import parse
from toolkit.probe.probe import gather
from toolkit.run.command import Command
from toolkit.run.local import LocalRunner

PROBE = (shipped_folder("containers") / "probe.sh").read_bytes()
SHELLS = [("dash",), ("bash", "--posix"), ("bash",), ("busybox", "sh")]
ASKED = NodeChoice("all", 2)
TEXT = command(ASKED).stdin or b""


def run(shell, text=PROBE, words=(), **environment):
    done = Command((*shell, "-s", *words), stdin=text, env=environment, timeout=60)
    return LocalRunner().run(done)


@pytest.mark.parametrize("shell", SHELLS, ids=" ".join)
def test_every_question_is_answered_in_every_shell(shell):
    done = run(shell, TOOLKIT_SITE="yes")
    assert done.errors == ""
    sections = parse(done.text, shell[0])
    assert sections["architecture"].ok
    assert len(sections) == PROBE.decode().count("\nask ") + PROBE.decode().count("\n    ask ")


@pytest.mark.parametrize("shell", SHELLS, ids=" ".join)
def test_all_shells_read_the_same_facts(shell):
    assert _host_facts(shell) == _host_facts(("dash",))


def _host_facts(shell, **environment):
    """Return this machine's facts without network interfaces, because parallel tests add interfaces."""
    host = read(run(shell, **environment).text, "here", NodeChoice("0")).host
    evidence = {fact: text for fact, text in host.evidence.items() if not fact.startswith("interfaces")}
    return msgspec.structs.replace(host, interfaces=(), interfaces_routed=(), evidence=evidence)


def _commands(folder, **texts):
    for name, text in texts.items():
        (folder / name).write_text(f"#!/bin/sh\n{text}\n")
        (folder / name).chmod(0o755)
    return f"{folder}:{os.environ['PATH']}"


@pytest.mark.parametrize("shell", SHELLS, ids=" ".join)
def test_a_file_to_preload_that_is_not_there_changes_no_fact(shell):
    expected = _host_facts(("dash",))
    told = _host_facts(shell, LD_PRELOAD="/nonexistent/libxalt_init.so")
    assert told.environment == {**expected.environment, "LD_PRELOAD": ""}
    assert msgspec.structs.replace(told, environment=expected.environment) == expected


def test_the_release_of_a_kernel_is_no_address(tmp_path):
    said = "6.6.87.2-microsoft-standard-WSL2"
    path = _commands(tmp_path, uname=f"case $1 in -r) echo {said} ;; *) /usr/bin/uname $1 ;; esac")
    assert parse(run(("dash",), PATH=path).text, "here")["kernel"].lines == (said,)


def test_a_folder_for_temporary_files_that_is_not_there_does_no_harm(tmp_path):
    done = run(("dash",), TMPDIR=str(tmp_path / "job.4711"))
    assert parse(done.text, "here")["temporary"].lines[1:] == ("usable no",)
    assert done.errors == ""


def test_a_controller_that_does_not_answer_is_asked_once(tmp_path):
    told = f"echo asked >>{tmp_path}/told; exec sleep 64.5"
    path = _commands(
        tmp_path, scontrol=told, sinfo=f"case $1 in --version) echo slurm 23.02.7 ;; *) {told} ;; esac"
    )
    begun = time.monotonic()
    host = read(run(("dash",), PATH=path, TOOLKIT_SITE="yes").text, "here", NodeChoice("0")).host
    assert time.monotonic() - begun < 12
    assert (tmp_path / "told").read_text() == "asked\n"
    assert "no answer in time" in host.unknown["slurm.nodes"]
    assert not [c for c in _running() if "64.5" in c]


def test_an_unshare_that_maps_nobody_is_asked_for_less(tmp_path):
    old = "echo \"unshare: invalid option -- 'r'\" >&2; exit 1"
    path = _commands(tmp_path, unshare=f'case $1 in -Ur) {old} ;; -U) exec "$2" ;; esac')
    section = parse(run(("dash",), PATH=path).text, "here")["user-namespaces"]
    assert section.ok
    assert not any("unshare" in line for line in section.lines)
    refused = _commands(
        tmp_path, unshare="echo 'unshare: unshare failed: Operation not permitted' >&2; exit 1"
    )
    section = parse(run(("dash",), PATH=refused).text, "here")["user-namespaces"]
    assert (section.status, section.lines[-1]) == (1, "unshare: unshare failed: Operation not permitted")


def test_plugins_of_slurm_are_looked_for_in_all_folders_that_it_names(tmp_path):
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "mpi_pmix_v4.so").write_bytes(b"/opt/pmix/4/lib/libpmix.so.2\0")
    path = _commands(tmp_path, scontrol=f"echo 'PluginDir               = /usr/lib64/slurm:{tmp_path}/own'")
    lines = parse(run(("dash",), PATH=path).text, "here")["pmix"].lines
    assert any(line.endswith("/own/mpi_pmix_v4.so") for line in lines)
    assert "named /opt/pmix/4/lib/libpmix.so.2" in lines


@pytest.mark.parametrize("shell", SHELLS, ids=" ".join)
def test_the_settings_of_a_runtime_are_read_as_it_reads_them_itself(shell, tmp_path):
    (tmp_path / "etc" / "apptainer").mkdir(parents=True)
    (tmp_path / "etc" / "apptainer" / "apptainer.conf").write_text(
        "# mount home = no\n\tmount tmp = no\nmount tmp = yes\noci mode =\noci mode = yes\n"
        "  bind path = /etc,/nowhere:/x\nbind path = /gone\n"
    )
    asked = f"case $1 in buildcfg) echo SYSCONFDIR={tmp_path}/etc ;; *) echo apptainer version 1.4.5 ;; esac"
    path = _commands(tmp_path, apptainer=asked)
    found = read(run(shell, PATH=path).text, "here", NodeChoice("0")).host.runtime
    assert found.settings == {"mount tmp": "no", "oci mode": "yes"}
    assert found.unbound == ("/nowhere:/x", "/gone")


def test_modules_of_every_runtime_are_found_by_one_call(tmp_path):
    # These are module names of SDSC, ABCI, Kyushu University, TACC and others; some only resemble a runtime's
    # name.
    names = ("singularitypro/3.11", "singularity-ce/4.1.4", "tacc-apptainer/1.3.3", "singularityce/3.10.3")
    listed = "\\n".join(("/apps/modules:", *names, "Apptainer/1.3.1(default)", "singularity-hpc/0.1.28"))
    told = tmp_path / "told"
    profile = f"module() {{ case \"$*\" in *avail*) echo asked >>{told}; printf '{listed}\\n' >&2 ;; esac; }}"
    (tmp_path / ".bash_profile").write_text(profile)
    sections = parse(run(("dash",), HOME=str(tmp_path), TOOLKIT_SITE="yes").text, "here")
    assert set(sections["modules"].values("offers")) == {*names, "Apptainer/1.3.1(default)"}
    assert told.read_text() == "asked\n"


def test_colours_that_grep_is_told_to_print_are_in_no_answer(tmp_path):
    # This fake grep acts like grep up to 2.20, which RHEL 7 has (rbenv/rbenv pull request 41).
    path = _commands(
        tmp_path, scontrol="echo 'MpiDefault = pmix'", grep='exec /usr/bin/grep $GREP_OPTIONS "$@"'
    )
    done = run(("dash",), PATH=path, GREP_OPTIONS="--color=always")
    assert parse(done.text, "here")["slurm-config"].lines == ("MpiDefault = pmix",)


@pytest.mark.parametrize("shell", SHELLS, ids=" ".join)
def test_a_function_of_the_shell_that_was_cut_changes_no_fact(shell):
    cut = {"BASH_FUNC_module%%": "() {  eval `/usr/bin/modulecmd bash $*"}
    assert _host_facts(shell, **cut) == _host_facts(("dash",))


SRUN = """#!/bin/sh
case " $* " in *" --label "*) ;; *) exit 0 ;; esac
for node in {nodes}; do
    SLURMD_NODENAME=node$node
    export SLURMD_NODENAME SLURM_MPI_TYPE=none
    for word in "$@"; do last=$word; done
    {prepare}
    sh -c "$last" <"$0.script" | sed "s/^/$node: /"
done
{ending}
"""
SINFO = """#!/bin/sh
printf 'node1|idle|debug*\\nnode2|mixed|debug*\\nnode3|down*|debug*\\n'
"""


@pytest.fixture
def slurm(tmp_path):
    """Return a function that fakes states of Slurm that a real cluster does not enter on request."""

    def make(nodes="1 2", prepare="", ending="exit 0", scontrol="exit 0"):
        text = SRUN.format(nodes=nodes, prepare=prepare, ending=ending).replace(
            "for node in", 'cat >"$0.script"\nfor node in', 1
        )
        for name, content in (("srun", text), ("sinfo", SINFO), ("scontrol", f"#!/bin/sh\n{scontrol}\n")):
            (tmp_path / name).write_text(content)
            (tmp_path / name).chmod(0o755)
        return f"{tmp_path}:{os.environ['PATH']}"

    return make


@pytest.mark.parametrize("shell", SHELLS, ids=" ".join)
def test_a_place_and_its_nodes_answer_in_every_shell(shell, slurm):
    done = run(shell, TEXT, ("all", "2"), PATH=slurm())
    assert done.errors == ""
    bundle = read(done.text, "here", ASKED)
    assert [group.nodes for group in bundle.groups] == [("node1", "node2")]
    assert bundle.silent == {"node3": "toolkit did not probe this node, which is down*"}


@pytest.mark.parametrize("shell", SHELLS, ids=" ".join)
def test_nodes_that_hang_are_given_up_and_leave_nothing_behind(shell, slurm):
    path = slurm("1", ending="trap '' TERM; exec sleep 61.5")
    text = TEXT.replace(b"wait_s + 20", b"wait_s + 2")
    begun = time.monotonic()
    bundle = read(run(shell, text, ("1", "1"), PATH=path).text, "here", NodeChoice("1", 1))
    assert time.monotonic() - begun < 20
    assert bundle.host.compute_nodes == ("node1",)
    assert not [c for c in _running() if "61.5" in c]


@pytest.mark.parametrize("shell", SHELLS, ids=" ".join)
def test_a_controller_that_hangs_does_not_keep_the_place_from_answering(shell, slurm):
    text = TEXT.replace(b"wait_s + 20", b"wait_s + 2")
    done = run(shell, text, ("1", "1"), PATH=slurm("1", scontrol="exec sleep 63.5"))
    bundle = read(done.text, "here", NodeChoice("1", 1))
    assert bundle.host.kernel is not None
    assert bundle.host.compute_nodes is None
    assert not [c for c in _running() if "63.5" in c]


def test_a_controller_that_refuses_is_told(slurm):
    done = run(("dash",), TEXT, ("1", "1"), PATH=slurm("1", scontrol="exit 1"))
    assert separate(done.text, NodeChoice()).trouble == "srun: Slurm's controller does not answer"


def test_nodes_that_answer_in_part_are_told(slurm):
    cut = run(("dash",), TEXT, ("all", "2"), PATH=slurm(prepare='[ "$node" = 1 ] || last="$last </dev/null"'))
    bundle = read(cut.text, "here", ASKED)
    assert bundle.host.compute_nodes == ("node1",)
    assert bundle.silent["node2"] == "its answer was incomplete"


def test_an_error_of_srun_names_neither_person_nor_address(slurm):
    person = LocalRunner().run(Command.of("id", "-un")).text.strip()
    wrong = f"echo 'srun: error: {person} at 10.1.2.3:6817: Invalid account' >&2; exit 1"
    done = run(("dash",), TEXT, ("1", "2"), PATH=slurm("", ending=wrong))
    assert separate(done.text, NodeChoice()).trouble == "srun: - at ADDRESS: Invalid account"


def test_without_slurm_the_place_answers_alone():
    done = run(("dash",), TEXT, ("1", "2"))
    bundle = read(done.text, "here", NodeChoice())
    assert bundle.host.kernel is not None
    assert "compute_nodes" in bundle.host.absent


def test_an_interrupt_takes_the_nodes_along(slurm):
    path = slurm("1", ending="exec sleep 62.5")
    done = Command(("sh", "-s", "1", "5"), stdin=TEXT, env={"PATH": path}, timeout=3)
    assert LocalRunner().run(done).timed_out
    time.sleep(1.5)
    assert not [c for c in _running() if "62.5" in c]


def _running() -> list[str]:
    listed = LocalRunner().run(Command.of("ps", "-eo", "args")).text
    return [line for line in listed.splitlines() if line.startswith("sleep ")]


# Job scripts use these variables, whose values must not be in the probe's answer.
SECRET = "Tk9" + "x7Q" * 9
NAMES = st.sampled_from(
    [
        "OMPI_MCA_btl_tcp_if_include",
        "OMPI_MCA_mca_base_env_list",
        "OMPI_MCA_orte_hnp_uri",
        "PMIX_MCA_gds",
        "OPAL_PREFIX",
        "TMPDIR",
        "LD_LIBRARY_PATH",
        "NCCL_AUTH_TOKEN",
        "APPTAINER_DOCKER_PASSWORD",
        "APPTAINERENV_API_KEY",
        "HOROVOD_SECRET",
        "WANDB_API_KEY",
        "GITHUB_TOKEN",
        "SLURM_MPI_TYPE",
        f"UCX_{SECRET}",
        f"GH_{SECRET}",
    ]
)
VALUES = st.lists(
    st.one_of(
        st.sampled_from(
            [
                SECRET,
                "/home/lovelace",
                "/home/lovelace/.cache",
                "/scratch/lovelace/tmp",
                "lovelace",
                "user=lovelace",
                "10.23.45.67",
                "tcp://10.23.45.67:1234",
                "fe80::1ff:fe23:4567:890a",
                "02:42:ac:11:00:02",
                "tcp,self",
            ]
        ),
        st.text(string.ascii_lowercase + "/,=:;. ", max_size=8),
    ),
    min_size=1,
    max_size=4,
)
FORBIDDEN = (SECRET, "lovelace", "10.23.45.67", "fe80::1ff", "02:42:ac:11:00:02")


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.dictionaries(NAMES, VALUES, max_size=6),
    st.dictionaries(
        st.sampled_from(["btl", "oob_tcp_if_include", "x_token", "psec", "mca_base_env_list"]), VALUES
    ),
    st.sampled_from([":", " ", ",", "/", ";"]),
)
def test_nothing_of_a_person_is_in_the_answer(tmp_path, environment, settings_file, between):
    home = tmp_path / "lovelace"
    (home / ".openmpi").mkdir(parents=True, exist_ok=True)
    (home / "bin").mkdir(exist_ok=True)
    lines = [f"{name} = {between.join(values)}" for name, values in settings_file.items()]
    (home / ".openmpi" / "mca-params.conf").write_text("\n".join([*lines, f"# {SECRET}", f"-x T={SECRET}"]))
    (home / ".pmix").mkdir(exist_ok=True)
    (home / "bin" / "id").write_text("#!/bin/sh\n[ $1 = -un ] && echo lovelace || echo 1000\n")
    (home / "bin" / "id").chmod(0o755)
    (home / "bin" / "mpirun").write_text(
        f"#!/bin/sh\n[ $1 = --version ] && echo 'mpirun (Open MPI) 4.1.4' {home} || env\n"
    )
    (home / "bin" / "mpirun").chmod(0o755)
    given_there = {name: between.join(values).replace("\0", "") for name, values in environment.items()}
    there = {**given_there, "HOME": str(home), "PATH": f"{home}/bin:{os.environ['PATH']}", "USER": "lovelace"}
    done = run(("dash",), PROBE, **there)
    parse(done.text, "here")
    for word in FORBIDDEN:
        assert word not in done.text, word
    assert str(home) not in done.text


def _resize(cluster, node, size):
    container = f"toolkit-{cluster.name}-{node}"
    assert not mounting.on_node(container, "mount", "-o", f"remount,size={size}", "/dev/shm")


def _shm(bundle) -> list[int | None]:
    return [group.facts.shm for group in bundle.groups]


def test_the_nodes_of_a_cluster_are_one_group_until_one_differs(cluster, login, tmp_path):
    alike = gather(login, NodeChoice("all", 30))
    assert [group.nodes for group in alike.groups] == [("node1", "node2")]
    assert alike.host.differs == {}
    before = alike.host.shm
    _resize(cluster, "node2", "64m")
    try:
        file = tmp_path / "facts.json"
        done = toolkit(
            "probe", "--cluster", cluster.name, "--nodes", "node[1-2]", "--wait", "30", "-o", str(file)
        )
        assert "shm: 64 MiB" in done.stdout
        saved = json.loads(file.read_text())
        assert saved["schema"] == "toolkit.facts/2"
        assert [group["nodes"] for group in saved["groups"]] == [["node1"], ["node2"]]
        assert saved["groups"][1]["differs"] == ["shm"]
        host = load(file)
        assert set(host.differs) == {"shm"}
        assert host.shm == before
        assert host.slurm is not None
        assert host.slurm.mpi_default == "pmix"
        text = file.read_text()
        assert "/home/ada" not in text
        assert "/work/ada" not in text
    finally:
        _resize(cluster, "node2", str(before))


def test_one_compute_node_is_asked_by_default_and_none_if_not_wanted(login):
    assert gather(login).host.compute_nodes in {("node1",), ("node2",)}
    alone = gather(login, NodeChoice("0"))
    assert alone.host.compute_nodes is None
    assert alone.host.unknown["compute_nodes"] == "compute nodes: toolkit did not probe these nodes"


def test_a_queue_that_is_full_is_told_and_no_job_stays_in_it(login):
    login.run(Command.of("sh", "-c", "sbatch -Q -N2 --exclusive -o /dev/null --wrap 'sleep 60'"))
    try:
        for _ in range(50):
            if "R" in login.run(Command.of("squeue", "-h", "-o", "%t")).text.split():
                break
            time.sleep(0.2)
        begun = time.monotonic()
        host = gather(login, NodeChoice("1", 2)).host
        assert time.monotonic() - begun < 15
        assert "no node answered within 2 s" in host.unknown["compute_nodes"]
        assert host.glibc is not None
        assert "toolkit-probe" not in login.run(Command.of("squeue", "-h", "-o", "%j")).text
    finally:
        login.run(Command.of("scancel", "-u", "ada"))


def test_a_node_that_there_is_not_is_told(login):
    bundle = gather(login, NodeChoice("nosuch", 2))
    assert "Invalid node name" in bundle.host.unknown["compute_nodes"]
    assert bundle.silent == {"nosuch": "did not answer"}


def test_a_step_of_an_allocation_that_we_are_in_is_not_queued(login):
    both = command(NodeChoice("node[1-2]", 5))
    login.write("/work/ada/probe/both.sh", both.stdin or b"")
    inside = (
        "cd /work/ada/probe && salloc -Q -N2 sh -c 'srun -N2 sleep 20 & sh -s node[1-2] 5 <both.sh; kill $!'"
    )
    done = login.run(Command.of("sh", "-c", inside, timeout=60))
    assert read(done.text, "here", NodeChoice("node[1-2]")).host.compute_nodes == ("node1", "node2")


def test_busybox_is_there_to_be_tested():
    assert shutil.which("busybox")
