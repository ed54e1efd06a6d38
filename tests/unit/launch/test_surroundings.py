"""Test the ranks' environment, which comes from the site, the facts and the job; the user's values have
priority.
"""

import re
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest

from tests.unit.heard import Heard
from tests.unit.launch.examples import GLOO, MPIRUN, NO_HOST, NO_IMAGE, SRUN, job_script, launch, spec
from tests.unit.launch.scripts import run
from tests.unit.tables import every_row
from toolkit.errors import BadInput
from toolkit.launch.jobscript.preflight import local_command, words
from toolkit.launch.request.gpus import tell_idle
from toolkit.launch.request.jobyaml import read
from toolkit.launch.request.layers import check_layer
from toolkit.model.facts import HostFacts, ImageFacts, SlurmFacts
from toolkit.model.jobfile import JobFile
from toolkit.model.site import Container, Defaults, Gpus, Launch, Partition, Site
from toolkit.scheduler import pbs
from toolkit.scheduler.slurm import header as sbatch_lines
from toolkit.trainers.checks.wanted import parse


def site(**more):
    return Site(schema="toolkit.site/1", title="A cluster", **more)


def host(**more):
    return HostFacts(place="here", **more)


NOWHERE = "^lo,docker,virbr,br-,podman,bridge,veth,cali,cni,tap,tun,ifb,dummy,lxc,vnet"
BINDS = SlurmFacts(settings={"TaskPlugin": "task/affinity,task/cgroup"})
BINDS_NOT = SlurmFacts(settings={"TaskPlugin": "(null)"})


def around(**more):
    plan = msgspec.structs.replace(more.pop("plan", SRUN), env={})
    return launch(spec(**more.pop("spec", {})), plan, **more).env


def test_a_rank_has_a_thread_for_each_core_where_the_cores_are_known():
    assert "OMP_NUM_THREADS" not in around()
    found = around(spec={"cpus_per_rank": 12})
    assert (found["OMP_NUM_THREADS"], found["TF_NUM_INTRAOP_THREADS"]) == ("12", "12")
    assert found["TF_NUM_INTEROP_THREADS"] == "2"
    assert around(spec={"cpus_per_rank": 2})["TF_NUM_INTEROP_THREADS"] == "1"


def test_intels_threads_are_told_how_to_wait_where_the_image_has_them():
    image = ImageFacts(path="x", format="sif", libraries=("libiomp5.so", "libmpi.so.40"))
    assert around(spec={"cpus_per_rank": 8}, image=image)["KMP_BLOCKTIME"] == "1"
    plain = msgspec.structs.replace(image, libraries=("libgomp.so.1",))
    assert "KMP_BLOCKTIME" not in around(spec={"cpus_per_rank": 8}, image=plain)
    assert "KMP_BLOCKTIME" not in around(image=image)


def test_the_interface_of_a_site_is_named_to_who_asks_for_one():
    mine = site(network="ib0", fabric="InfiniBand")
    assert around(site=mine, spec={"gpus_per_node": 4})["NCCL_SOCKET_IFNAME"] == "ib0"
    assert around(site=mine, plan=GLOO)["HOROVOD_GLOO_IFACE"] == "ib0"
    assert "UCX_NET_DEVICES" not in around(site=mine)
    assert around(site=site(network="eth0", fabric="Ethernet"))["UCX_NET_DEVICES"] == "eth0"
    assert "NCCL_SOCKET_IFNAME" not in around(site=mine, spec={"gpus_per_node": 4, "nodes": 1})


@every_row(
    ("interfaces", "taken"),
    [
        (("eth0", "ib0", "docker0"), "ib0"),
        (("eth0", "ib1", "ib0"), "ib1"),
        (("hsn0", "hsn1", "hsn2", "hsn3", "nmn0"), "hsn0,hsn1,hsn2,hsn3"),
        (("eth0", "opa0"), "opa0"),
        (("eth0", "ipogif0"), "ipogif0"),
        (("eth0", "docker0"), NOWHERE),
        (("docker0", "virbr0"), None),
        (("eth0",), None),
        (None, None),
    ],
)
def test_of_several_interfaces_nccl_takes_none_that_leads_nowhere(interfaces, taken):
    found = around(host=host(interfaces=interfaces), spec={"gpus_per_node": 2})
    assert found.get("NCCL_SOCKET_IFNAME") == taken


@every_row(
    ("interfaces", "routed", "taken"),
    [
        (("eth0", "ib0", "ib1"), ("eth0", "ib1"), "ib1"),
        (("hsn0", "hsn1", "nmn0"), ("nmn0", "hsn0"), "hsn0"),
        # A node of CoreWeave (marin-community/marin issue 7018): its InfiniBand interfaces have no addresses.
        (("enp90s0np0", "enp220s0f0", "ibs0", "ibs1"), ("enp90s0np0",), f"{NOWHERE},enp220s0f0,ibs0,ibs1"),
        (("eth1", "eth10", "ib0"), ("eth10",), f"{NOWHERE},ib0"),
        (("eth0", "ib0", "docker0"), ("docker0",), "ib0"),
    ],
)
def test_an_interface_without_a_route_carries_no_sockets(interfaces, routed, taken):
    found = around(
        host=host(interfaces=interfaces, interfaces_routed=routed), spec={"gpus_per_node": 2, "nodes": 2}
    )
    assert found.get("NCCL_SOCKET_IFNAME") == taken


def test_temporary_files_are_on_a_disk_that_the_container_has():
    mine = site(scratch="/local")
    assert around(site=mine)["TMPDIR"] == "/local"
    assert "/local" in launch(spec(), SRUN, mine).binds
    assert "/tmp" not in launch(spec(), SRUN, site(scratch="/tmp")).binds
    assert around(host=host(tmpdir="/scratch/USER"))["TMPDIR"] == "/tmp"
    assert "TMPDIR" not in around(host=host(tmpdir="/tmp"))
    assert "TMPDIR" not in around(host=host())


def test_a_persons_variable_wins_over_all_of_it():
    mine = site(env={"A": "site", "OMP_NUM_THREADS": "7"}, scratch="/local")
    made = job_script(
        spec(cpus_per_rank=4, env={"TMPDIR": "/mine", "OMP_NUM_THREADS": "3"}),
        SRUN,
        "",
        "singularity",
        mine,
    )
    assert "TMPDIR=/mine" in made
    assert "OMP_NUM_THREADS=3" in made
    assert not re.search(r"TMPDIR=/local|OMP_NUM_THREADS=[47]", made)


def launcher(plan=SRUN, *, facts=NO_HOST, mine=None, **changes):
    return launch(spec(**changes), plan, mine, facts).launcher


def test_ranks_are_bound_to_cores_where_slurm_can():
    assert "--cpu-bind=cores" in launcher(cpus_per_rank=4, facts=host(slurm=BINDS))
    assert "--cpu-bind=cores" not in launcher(cpus_per_rank=4, facts=host(slurm=BINDS_NOT), mine=site())
    assert "--cpu-bind=cores" in launcher(cpus_per_rank=4, mine=site())
    assert "--cpu-bind=cores" not in launcher(facts=host(slurm=BINDS))
    assert "--cpu-bind=cores" not in launcher(MPIRUN, cpus_per_rank=4, mine=site())
    assert "--cpu-bind=sockets" in launcher(cpu_bind="sockets", facts=host(slurm=BINDS_NOT))


def test_a_site_that_binds_in_its_own_way_is_not_contradicted():
    mine = site(launch=Launch(srun=("--cpu-bind=rank", "--distribution=block")))
    words = launcher(cpus_per_rank=4, mine=mine)
    assert [w for w in words if w.startswith("--cpu-bind")] == ["--cpu-bind=rank"]
    words = launcher(cpus_per_rank=4, mine=mine, cpu_bind="none")
    assert [w for w in words if w.startswith("--cpu-bind")] == ["--cpu-bind=none"]
    assert "--distribution=block" in words


def test_ranks_see_all_gpus_of_their_node_unless_asked_otherwise():
    assert not [w for w in launcher(gpus_per_node=4, mine=site()) if "gpu" in w]
    assert "--gpu-bind=closest" in launcher(gpus_per_node=4, gpu_bind="closest")


def test_the_site_names_the_pmix_plugin():
    mine = site(launch=Launch(mpi="pspmix"))
    assert launcher(mine=mine)[:2] == ("srun", "--mpi=pspmix")
    assert "--mpi=none" in launcher(GLOO, mine=mine)


def test_the_driver_is_brought_only_with_gpus():
    assert "--nv" in launch(spec(gpus_per_node=1), SRUN).container
    assert "--nv" not in launch(spec(), SRUN).container
    assert "--nv" not in launch(spec(gpus_per_node=0), SRUN).container
    comes = site(gpus=Gpus(ask="partition"), partitions=(Partition(name="GPU", default=True, gpus=2),))
    assert "--nv" in launch(spec(), SRUN, comes).container
    assert "--nv" not in launch(spec(partition="other"), SRUN, comes).container


def test_a_site_keeps_a_variable_that_is_dropped_elsewhere():
    assert SRUN.unset == ("OMPI_MCA_btl",)
    assert launch(spec(), SRUN, site(keep=("OMPI_*",))).unset == ()
    assert launch(spec(), SRUN, site(keep=("UCX_*",))).unset == SRUN.unset


@every_row(
    ("gpus", "line"),
    [
        (Gpus(), "--gres=gpu:v100:4"),
        (Gpus(gres="gpu:tesla"), "--gres=gpu:tesla:4"),
        (Gpus(ask="gpus-per-node"), "--gpus-per-node=v100:4"),
        (Gpus(ask="constraint", gres="gpu"), "--constraint=gpu"),
        (Gpus(ask="partition"), ""),
    ],
)
def test_gpus_are_asked_for_as_the_site_gives_them(gpus, line):
    lines = sbatch_lines(spec(gpus_per_node=4, gpu="v100"), site(gpus=gpus))
    assert [x for x in lines if "gpu" in x or "gres" in x] == [line] * bool(line)


def test_a_core_is_one_hardware_thread_of_it():
    smt = site(partitions=(Partition(name="a", default=True, cores=40, threads=4),))
    assert "--threads-per-core=1" in sbatch_lines(spec(cpus_per_rank=10), smt)
    assert "--threads-per-core=1" not in sbatch_lines(spec(), smt)
    assert "--threads-per-core=1" not in sbatch_lines(spec(cpus_per_rank=10))


def test_lines_of_site_and_person_come_last_and_once():
    mine = site(defaults=Defaults(sbatch=("--core-spec=4", "--hold")))
    assert sbatch_lines(spec(sbatch=("--hold", "-k")), mine)[-3:] == ["--core-spec=4", "--hold", "-k"]


@every_row(
    ("field", "value"),
    [
        ("qos", "x"),
        ("memory_per_cpu", "2G"),
        ("mail_type", "END"),
        ("elastic", True),
        ("requeue", True),
        ("gpu_bind", "closest"),
        ("cpu_bind", "cores"),
    ],
)
def test_what_pbs_has_no_option_for_is_refused(field, value):
    with pytest.raises(BadInput, match=f"^--{field.replace('_', '-')}: toolkit does not support this option"):
        pbs.header(spec(**{field: value}), site(scheduler="pbs"))


def test_pbs_gets_hours_and_takes_no_job_without_a_limit():
    assert "-l walltime=01:01:00" in pbs.header(spec(time="1:00:30"), site(scheduler="pbs"))
    assert "-l walltime=26:00:00" in pbs.header(spec(time="1-02"), site(scheduler="pbs"))
    for time in ("UNLIMITED", "INFINITE", "0"):
        with pytest.raises(BadInput, match=f"--time {time}: PBS needs a time limit"):
            pbs.header(spec(time=time), site(scheduler="pbs"))


@every_row(
    ("changes", "select"),
    [
        ({}, "select=2:mpiprocs=1"),
        ({"nodes": 4, "ranks_per_node": 8, "cpus_per_rank": 4}, "select=4:ncpus=32:mpiprocs=8:ompthreads=4"),
        ({"gpus_per_node": 4, "memory": "400G"}, "select=2:mpiprocs=1:ngpus=4:mem=400gb"),
        ({"constraint": "system=polaris"}, "select=2:mpiprocs=1:system=polaris"),
    ],
)
def test_a_select_statement_says_what_a_node_of_the_job_has(changes, select):
    assert f"-l {select}" in pbs.header(spec(**changes), site(scheduler="pbs"))


def test_pbs_counts_hardware_threads_where_the_partition_has_several():
    mine = site(scheduler="pbs", partitions=(Partition(name="q", default=True, threads=2),))
    assert "ncpus=16:" in pbs.header(spec(ranks_per_node=2, cpus_per_rank=4), mine)[1]


def test_a_job_of_pbs_can_follow_another_and_have_its_nodes_alone():
    lines = pbs.header(spec(dependency="afterok:12", exclusive=True, error="err.log"), None)
    assert {"-W depend=afterok:12", "-l place=scatter:excl", "-o output.log", "-e err.log"} <= set(lines)
    assert "-j oe" in pbs.header(spec(), None)


def test_pals_binds_a_rank_to_as_many_hardware_threads_as_its_cores_have():
    mine = site(launch=Launch(launcher="pals", srun=("--no-abort-on-failure",)))
    assert launcher(cpus_per_rank=4, mine=mine) == (
        *("mpiexec", "--depth", "4", "--cpu-bind", "depth"),
        "--no-abort-on-failure",
    )
    assert launcher(mine=site(launch=Launch(launcher="pals"))) == ("mpiexec",)


def test_only_a_preflight_that_is_known_is_asked_for_more_checks():
    def image(release):
        return ImageFacts(path="x", format="sif", stack={"toolkit": release})

    job = spec(gpus_per_node=4)
    assert words(job, None, None)[-1] == "toolkit.trainers.preflight"
    assert words(job, None, None) == words(job, None, ImageFacts(path="x", format="sif", stack={}))
    more = words(job, None, image("0.2.0"))[3:]
    assert more == (
        "--nodes",
        "2",
        "--output",
        job.directory,
        "--gpus-per-node",
        "4",
        "--image",
        job.image,
    )
    assert "--image" not in words(spec(image="/a:b.sif"), None, image("0.2.0"))


def test_what_a_person_wants_checked_is_asked_of_the_preflight():
    def image(release):
        return ImageFacts(path="x", format="sif", stack={"toolkit": release})

    job = spec(fabric_gbit=100, min_free="20G")
    asked = ["--fabric-gbit", "100", "--min-free", "20G"]
    assert " ".join(asked) in " ".join(words(job, None, image("0.2.0")))
    # toolkit does not read the image again when it relaunches a job.
    assert list(words(job, None, None)[3:]) == ["--output", job.directory, *asked]
    assert list(local_command(spec(nodes=1, min_free="1G")))[3:] == [
        "--output",
        job.directory,
        "--min-free",
        "1G",
    ]


def test_the_preflight_takes_the_words_that_it_is_given():
    job = spec(fabric_gbit=100, min_free="20G")
    wanted = parse(["--tasks", "2", *words(job, None, None)[3:]])
    assert (wanted.fabric_gbit, wanted.min_free, str(wanted.output)) == (100.0, 20 << 30, job.directory)


@every_row("value", ["20 G", "1.5G", "G", "-1", "20GB", "9" * 16])
def test_a_size_that_the_preflight_would_not_read_is_refused(value):
    with pytest.raises(BadInput, match="--min-free"):
        check_layer({"min_free": value}, "option", {}, strict=True)


def test_the_page_shows_every_field_of_a_job_file_and_no_other():
    page = (Path(__file__).parents[3] / "docs" / "job-file.md").read_text()
    text = page.split("```yaml\n")[1].split("```")[0]
    found = read(text.replace("# memory_per_cpu", "memory_per_cpu"), "docs/job-file.md")
    found.values["env"]["WANDB_API_KEY"] = "of the caller"
    said = check_layer(found.values, "docs/job-file.md", found.lines, strict=False).fields
    assert set(said.given_values()) == set(JobFile.__struct_fields__) - {"command"}
    assert "\n# command: [" in text


def test_modules_of_the_site_come_first_and_a_swap_is_a_swap():
    mine = site(modules=("GCC/12", "swap a b"), container=Container(modules=("apptainer",)), purge=True)
    made = job_script(spec(modules=("mine", "GCC/12")), SRUN, "", "singularity", mine)
    assert re.findall(r"^module (.*?)(?: \|\|.*)?$", made, re.MULTILINE) == [
        "purge",
        "load GCC/12",
        "swap a b",
        "load apptainer",
        "load mine",
    ]


def test_what_modules_set_for_the_mpi_of_the_host_stays_outside(tmp_path):
    mine = site(keep=("UCX_*",))
    made = job_script(spec(directory=str(tmp_path), preflight=False), SRUN, "", "singularity", mine)
    host_mpi = {
        "OMPI_MCA_pml": "ucx",
        "UCX_TLS": "rc",
        "PYTHONPATH": "/x",
        "SINGULARITY_PID": "1",
        "FI_X": "",
    }
    (words,) = run(made, tmp_path, **host_mpi).calls
    dropped = words[words.index("env") : words.index("singularity")]
    assert dropped == [
        "env",
        *(
            w
            for name in ("OMPI_MCA_pml", "FI_X", "SINGULARITY_PID", "PYTHONPATH", "OMPI_MCA_btl")
            for w in ("-u", name)
        ),
    ]
    (words,) = run(made, tmp_path).calls
    assert words[words.index("env") : words.index("singularity")] == ["env", "-u", "OMPI_MCA_btl"]
    assert "foreign" not in job_script(spec(), SRUN, "")
    assert "foreign" in job_script(spec(modules=("openmpi",)), SRUN, "")


NETWORK = {"FI_CXI_RX_MATCH_MODE": "software", "UCX_IB_GID_INDEX": "3"}
CHOICE = {"FI_PROVIDER": "cxi", "UCX_NET_DEVICES": "mlx5_0:1"}


@every_row(("mode", "kept"), [("srun-pmi2", {*NETWORK}), ("bind", {*NETWORK, "MPICH_GPU_SUPPORT_ENABLED"})])
def test_what_the_network_driver_needs_reaches_the_ranks(tmp_path, mode, kept):
    given = {**NETWORK, **CHOICE, "MPICH_GPU_SUPPORT_ENABLED": "1"}
    asked, plan = spec(directory=str(tmp_path), preflight=False), msgspec.structs.replace(SRUN, mode=mode)
    (words,) = run(job_script(asked, plan, "", "singularity", site()), tmp_path, **given).calls
    dropped = {word for flag, word in pairwise(words) if flag == "-u"}
    assert {name for name in given if name not in dropped} == kept


GPU_IMAGE = ImageFacts(path="net.sif", format="sif", cuda="12.4")


@every_row(
    ("more", "gpus"),
    [
        ({"host": host(gpus=("A100",) * 4, gpu_driver="550.54"), "image": GPU_IMAGE}, 4),
        ({"host": host(gpus=("A100",) * 4), "image": GPU_IMAGE}, 0),
        ({"host": host(gpus=("A100",), gpu_driver="550.54"), "image": ImageFacts(path="x", format="sif")}, 0),
        ({"host": host(gpus=("A100",), gpu_driver="550.54")}, 0),
        ({"site": site(partitions=(Partition(name="gpu", default=True, gpus=4),)), "image": GPU_IMAGE}, 4),
        ({"site": site(partitions=(Partition(name="batch", default=True),)), "image": GPU_IMAGE}, 0),
        ({"site": site(partitions=()), "image": GPU_IMAGE}, "N"),
        ({"image": GPU_IMAGE}, 0),
    ],
)
def test_gpus_that_nobody_asks_for_are_told(more, gpus):
    heard = Heard()
    there = {"site": None, "host": None, "image": NO_IMAGE} | more
    tell_idle("net.sif", spec(), **there, tell=heard)
    note = f"net.sif can use GPUs, but the job does not request GPUs; add --gpus-per-node {gpus}"
    assert heard.steps == [note] * bool(gpus)
    for asked in (0, 2):
        tell_idle("net.sif", spec(gpus_per_node=asked), **there, tell=heard)
    assert heard.steps == [note] * bool(gpus)
