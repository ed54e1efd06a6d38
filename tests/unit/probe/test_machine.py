"""Test the facts of a machine: one parser for each fact, and the reason for a missing fact."""

from tests.unit.tables import every_row
from toolkit.probe.evidence import Section, parse
from toolkit.probe.facts import host_facts
from toolkit.probe.read import machine, system


def said(text: str, status: int = 0) -> Section:
    return Section("x", tuple(text.splitlines()), status)


def facts(body: str):
    return host_facts("here", parse(f"toolkit-probe/1\n{body}@end\n", "here"))


V1 = "flags\t\t: fpu cmov cx8 fxsr mmx sse sse2 lm"
V2 = f"{V1} cx16 lahf_lm popcnt pni sse4_1 sse4_2 ssse3"
V3 = f"{V2} abm avx avx2 bmi1 bmi2 f16c fma movbe xsave"
V4 = f"{V3} avx512f avx512bw avx512cd avx512dq avx512vl"


@every_row(
    ("flags", "level"),
    [
        (V1, "x86-64-v1"),
        (V2, "x86-64-v2"),
        (V3, "x86-64-v3"),
        (V4, "x86-64-v4"),
        (V4.replace(" movbe", ""), "x86-64-v2"),
    ],
)
def test_a_processor_has_a_level_only_whole(flags, level):
    assert machine.cpu_level(said(flags)) == level


def test_a_processor_that_is_no_x86_has_no_level_and_flags_that_are_strange_are_unknown():
    assert "cpu_level" in facts("@ cpu\n@rc 0\n").absent
    assert "cpu_level" in facts("@ cpu\n|flags : odd\n@rc 0\n").unknown
    assert "cpu_level" in facts("@ cpu\n|awk: cannot open /proc/cpuinfo\n@rc 2\n").unknown


CPU = "@ cpu\n|vendor_id\t: AuthenticAMD\n|siblings\t: {}\n|cpu cores\t: {}\n|flags\t\t: fpu\n{}@rc 0\n"


@every_row(
    ("siblings", "cores", "smt", "threads"),
    [
        (64, 64, "|smt notsupported\n", 1),
        (128, 64, "|smt on\n", 2),
        (64, 64, "|smt off\n", 2),
        (64, 64, "|smt forceoff\n", 2),
        (64, 64, "", 1),
        (1, 0, "", 1),
        ("many", 64, "", None),
    ],
)
def test_a_core_has_its_threads_though_the_kernel_has_them_off(siblings, cores, smt, threads):
    found = facts(CPU.format(siblings, cores, smt))
    assert (found.cpu_vendor, found.cpu_threads) == ("AuthenticAMD", threads)
    assert ("cpu_threads" in found.unknown) == (threads is None)


def test_who_made_a_processor_that_is_no_x86_is_not_told():
    assert {"cpu_vendor", "cpu_threads"} <= facts("@ cpu\n@rc 0\n").absent.keys()
    odd = facts("@ cpu\n|vendor_id : <b>\n@rc 0\n")
    assert {"cpu_vendor", "cpu_threads"} <= odd.unknown.keys()


def test_memory_is_told_in_bytes():
    host = facts("@ memory\n|locked 8192\n|shm 65536\n@rc 0\n")
    assert (host.locked_memory, host.shm) == (8192 << 10, 64 << 20)
    assert host.cite("locked_memory") == "ulimit -l: 8192 KiB"
    assert facts("@ memory\n|locked unlimited\n@rc 0\n").locked_memory == -1
    assert "shm" in facts("@ memory\n|locked unlimited\n@rc 0\n").unknown
    assert "locked_memory" in facts("@ memory\n|locked many\n@rc 0\n").unknown


NETWORK = """@ network
|lo
|veth12ab
|ib0
|hsn0
|eno1
|state lo unknown
|state veth12ab up
|state ib0 down
|state hsn0 up
|state eno1 up
|route eno1
|infiniband mlx5_1
|infiniband mlx5_0
|link mlx5_0 Ethernet
|link mlx5_1 InfiniBand
|link mlx5_1 Ethernet
|link mlx5_2
@rc 0
"""


def test_interfaces_that_lead_somewhere_come_first_and_those_of_containers_do_not_count():
    host = facts(NETWORK)
    assert host.interfaces == ("eno1", "hsn0", "ib0")
    assert host.interfaces_routed == ("eno1",)
    assert host.infiniband == ("mlx5_0", "mlx5_1")
    assert host.link_layers == {"mlx5_0": "Ethernet", "mlx5_1": "InfiniBand"}
    assert host.cite("infiniband") == "/sys/class/infiniband: mlx5_0 (Ethernet) mlx5_1 (InfiniBand)"
    assert "interfaces" in facts("@ network\n|ls: cannot access\n@rc 1\n").unknown


def test_a_card_whose_ports_are_down_carries_nothing():
    """Source: linux:Documentation/ABI/stable/sysfs-class-infiniband.

    A port without a subnet manager is INIT.
    """
    card = "@ network\n|infiniband mlx5_0\n|link mlx5_0 InfiniBand\n|port mlx5_0 {}\n"
    for state in ("1: DOWN", "2: INIT"):
        host = facts(card.format(state) + "@rc 0\n")
        assert host.infiniband == ()
        assert host.cite("infiniband") == "/sys/class/infiniband: every port is down: mlx5_0"
    for state in ("4: ACTIVE", "5: ACTIVE_DEFER", "", "1: DOWN\n|port mlx5_0 4: ACTIVE"):
        assert facts(card.format(state) + "@rc 0\n").infiniband == ("mlx5_0",)


def test_an_answer_of_an_earlier_probe_tells_no_link():
    host = facts("@ network\n|ib0\n|state ib0 up\n|infiniband mlx5_0\n@rc 0\n")
    assert (host.infiniband, host.link_layers, host.interfaces_routed) == (("mlx5_0",), {}, ())
    assert host.cite("infiniband") == "/sys/class/infiniband: mlx5_0"


@every_row(
    ("device", "fabric"),
    [
        ("/dev/cxi0 ", "slingshot"),
        ("/sys/class/cxi/cxi0 cxi_ss1", "slingshot"),
        ("/dev/kgni0 ", "aries"),
        ("/dev/hfi1_0 ", "omni-path"),
        ("/sys/class/infiniband/hfi1_0 hfi1", "omni-path"),
        ("/sys/class/infiniband/rdmap0s6 efa", "efa"),
    ],
)
def test_fabrics_are_told_by_their_devices(device, fabric):
    assert machine.fabrics(said(f"device {device}")) == (fabric,)


def test_where_there_is_another_runtime_that_is_told():
    host = facts("@ runtime\n|other crun\n|other runc\n@rc 127\n")
    assert host.runtime is None
    assert host.cite("runtime") == (
        "apptainer, singularity: not found on PATH; found but not used: crun, runc"
    )
    assert host.cite("runtime") == host.absent["runtime"]
    assert facts("@ runtime\n@rc 127\n").absent["runtime"] == "apptainer, singularity: not found on PATH"


def test_a_card_of_infiniband_is_no_other_fabric():
    assert machine.fabrics(said("device /sys/class/infiniband/mlx5_0 mlx5_core")) == ()
    assert facts("@ fabrics\n@rc 0\n").fabrics == ()
    assert "fabrics" in facts("@ fabrics\n@rc 124\n").unknown


def test_what_processes_of_one_user_may_do_to_each_other():
    host = facts("@ neighbours\n|ptrace_scope 1\n|xpmem yes\n|munge /run/munge/munge.socket.2\n@rc 0\n")
    assert (host.ptrace_scope, host.xpmem, host.munge) == (1, True, True)
    bare = facts("@ neighbours\n|xpmem no\n@rc 0\n")
    assert (bare.ptrace_scope, bare.xpmem, bare.munge) == (None, False, False)
    assert "ptrace_scope" in bare.absent
    silent = facts("@ neighbours\n@rc 124\n")
    assert {"ptrace_scope", "xpmem", "munge"} <= set(silent.unknown)
    assert "ptrace_scope" in facts("@ neighbours\n|ptrace_scope x\n@rc 0\n").unknown


def test_settings_that_follow_the_home_folder():
    said_there = (
        "@ mca-params\n|file ~/.openmpi/mca-params.conf\n|set btl = tcp,self\n|set btl = self\n@rc 0\n"
    )
    host = facts(said_there)
    assert host.mca_params == {"btl": "tcp,self"}
    assert host.cite("mca_params") == "~/.openmpi/mca-params.conf: btl"
    assert facts("@ mca-params\n@rc 0\n").mca_params == {}
    locked = facts(
        "@ mca-params\n|file ~/.pmix/mca-params.conf\n|unreadable ~/.pmix/mca-params.conf\n@rc 0\n"
    )
    assert locked.mca_params is None
    assert "~/.pmix/mca-params.conf" in locked.unknown["mca_params"]


def test_the_folder_for_temporary_files():
    host = facts("@ temporary\n|TMPDIR=/scratch/-/tmp\n|usable no\n@rc 0\n")
    assert (host.tmpdir, host.tmpdir_usable) == ("/scratch/-/tmp", False)
    assert facts("@ temporary\n|TMPDIR=/tmp\n|usable yes\n@rc 0\n").tmpdir_usable is True
    assert {"tmpdir", "tmpdir_usable"} <= set(facts("@ temporary\n@rc 0\n").absent)
    assert {"tmpdir", "tmpdir_usable"} <= set(facts("@ temporary\n@rc 124\n").unknown)


KERNEL = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.183.01  Sun May 12 19:39:15 UTC 2024"


def test_gpus_by_either_way():
    listed = "550.54.15, NVIDIA A100-SXM4-40GB\n550.54.15, NVIDIA A100-SXM4-40GB"
    assert system.gpus(said(listed)) == ("NVIDIA A100-SXM4-40GB",) * 2
    hidden = said(f"{KERNEL}\nmodel NVIDIA H100 80GB HBM3\nNo devices were found", 6)
    assert system.gpus(hidden) == ("NVIDIA H100 80GB HBM3",)
    assert system.gpu_driver(hidden) == "535.183.01"


def test_a_driver_whose_gpus_are_hidden_leaves_them_unknown():
    host = facts(f"@ gpu\n|{KERNEL}\n|No devices were found\n@rc 6\n")
    assert host.gpu_driver == "535.183.01"
    assert "gpus" in host.unknown
    assert "gpus" in facts("@ gpu\n@rc 127\n").absent


MISMATCH = "Failed to initialize NVML: Driver/library version mismatch"
NO_DRIVER = (
    "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. "
    "Make sure that the latest NVIDIA driver is installed and running."
)


def test_a_host_with_the_tools_of_nvidia_and_no_driver_has_none():
    """A login host can have the GPU nodes' software without a driver."""
    host = facts(f"@ gpu\n|{NO_DRIVER}\n|\n@rc 9\n")
    assert {"gpu_driver", "gpus", "mig"} <= set(host.absent)
    assert host.cite("gpu_driver").startswith("no NVIDIA driver: NVIDIA-SMI has failed")
    assert facts(f"@ gpu\n|{KERNEL}\n|{NO_DRIVER}\n@rc 9\n").gpu_driver == "535.183.01"


def test_a_driver_that_was_updated_without_a_restart_is_that_of_the_kernel():
    host = facts(f"@ gpu\n|{KERNEL}\n|GCC version:  gcc 8.5.0\n|{MISMATCH}\n@rc 18\n")
    assert (host.gpu_driver, host.gpu_mismatch) == ("535.183.01", True)
    assert host.unknown["gpus"] == host.cite("gpu_mismatch") == f"nvidia-smi: {MISMATCH}"
    assert not facts(f"@ gpu\n|{KERNEL}\n|No devices were found\n@rc 6\n").gpu_mismatch


def test_parts_of_gpus_by_their_profiles():
    whole = f"@ gpu\n|{KERNEL}\n|535.183.01, NVIDIA A100-SXM4-40GB\n|parts listed\n@rc 0\n"
    assert facts(whole).mig == ()
    assert facts(whole).gpus == ("NVIDIA A100-SXM4-40GB",)
    divided = facts(whole.replace("|parts", "|part 3g.20gb\n|part 1c.3g.20gb\n|parts"))
    assert divided.mig == ("3g.20gb", "1c.3g.20gb")
    assert divided.cite("mig") == "nvidia-smi -L: 3g.20gb 1c.3g.20gb"
    assert "the probe did not read this fact" in facts(whole.replace("|parts listed\n", "")).unknown["mig"]
    assert "mig" in facts("@ gpu\n@rc 127\n").absent


def test_gpus_of_amd_by_the_bus_and_by_what_a_job_may_use():
    """The driver amdkfd hides GPUs that the job did not request. 1002:7408 is MI250X in pci.ids."""
    bus = "|device 0x7408\n" * 8
    assert facts(f"@ gpu-amd\n{bus}{'|gfx 90010' + chr(10)}@rc 0\n").amd_gpus == ("gfx90a",) * 8
    hidden = facts(f"@ gpu-amd\n{bus}@rc 0\n")
    assert hidden.amd_gpus == ("1002:7408",) * 8
    assert hidden.cite("amd_gpus") == "/sys/bus/pci/drivers/amdgpu, /sys/class/kfd: 8 of 1002:7408"
    divided = facts("@ gpu-amd\n|device 0x74a1\n" + "|gfx 90402\n" * 8 + "@rc 0\n")
    assert divided.amd_gpus == ("gfx942",) * 8
    assert facts("@ gpu-amd\n|gfx 110501\n|gfx 90010\n@rc 0\n").amd_gpus == ("gfx1151", "gfx90a")
    assert facts("@ gpu-amd\n@rc 0\n").amd_gpus == ()
    assert facts("@ gpu-amd\n|device x\n|gfx many\n@rc 0\n").amd_gpus == ()
    assert "amd_gpus" in facts("@ gpu-amd\n@rc 124\n").unknown


def test_the_newest_c_library_that_the_driver_names():
    text = "@ gpu-libraries\n|file /lib/libcuda.so.550.54.15\n|glibc GLIBC_2.9\n|glibc GLIBC_2.34\n@rc 0\n"
    assert facts(text).gpu_libraries_glibc == "2.34"
    assert "gpu_libraries_glibc" in facts("@ gpu-libraries\n@rc 0\n").absent
    assert "gpu_libraries_glibc" in facts("@ gpu-libraries\n|file /lib/libcuda.so.1\n@rc 0\n").unknown


def test_versions_of_the_c_library():
    assert machine.newest_glibc(("GLIBC_2.9", "GLIBC_2.10", "GLIBC_2.2.5")) == "2.10"
    assert machine.newest_glibc(("GLIBC_2.17", "GLIBC_ABI_DT_RELR")) == "2.36"
    assert machine.newest_glibc(("GLIBC_PRIVATE", "GLIBC_2." + "9" * 50)) is None


def test_the_libfabric_of_the_loaders_cache():
    host = facts("@ libfabric\n|/lib/x86_64-linux-gnu/libfabric.so.1\n|/opt/libfabric.so.1\n@rc 0\n")
    assert host.libfabric == "/lib/x86_64-linux-gnu/libfabric.so.1"
    assert "libfabric" in facts("@ libfabric\n@rc 0\n").absent
    assert "libfabric" in facts("@ libfabric\n@rc 127\n").unknown


def test_packages_of_the_home_folder():
    assert facts("@ user-packages\n|python 3.11\n|python 3.12\n@rc 0\n").user_packages == ("3.11", "3.12")
    assert facts("@ user-packages\n@rc 0\n").user_packages == ()
    assert "user_packages" in facts("@ user-packages\n@rc 124\n").unknown
    told = "|python 3.11\n|package 3.11 mpi4py-4.1.2.dist-info\n|package 3.11 impi_rt-2021.19.0.dist-info\n"
    host = facts(f"@ user-packages\n{told}|package 3.11 x.dist-info\n@rc 0\n")
    assert host.user_site == {"3.11": ("mpi4py 4.1.2", "impi-rt 2021.19.0")}


def test_the_program_by_which_enroot_hands_in_gpus():
    there = facts("@ gpu-container\n|/usr/bin/nvidia-container-cli\n@rc 0\n")
    assert there.gpu_container_cli == there.cite("gpu_container_cli") == "/usr/bin/nvidia-container-cli"
    assert "gpu_container_cli" in facts("@ gpu-container\n@rc 127\n").absent
    assert "gpu_container_cli" in facts("@ gpu-container\n@rc 124\n").unknown


@every_row(
    ("lines", "found"),
    [
        ("|has loop: /dev\n|has squashfs: /proc/filesystems\n@rc 0\n", ("loop", "squashfs")),
        ("|lacks loop\n|has squashfs: /lib/modules/6.1\n@rc 0\n", ("squashfs",)),
        ("|lacks loop\n|lacks squashfs\n@rc 0\n", ()),
        ("|has loop: /dev\n@rc 0\n", None),
        ("@rc 124\n", None),
    ],
)
def test_what_the_kernel_needs_to_mount_an_image_is_known_if_both_are(lines, found):
    host = facts(f"@ kernel-mounts\n{lines}")
    assert host.kernel_mounts == found
    assert ("kernel_mounts" in host.evidence) is (found is not None)


def test_the_limit_of_user_namespaces_is_read_from_the_kernel():
    host = facts("@ user-namespaces\n|user/max_user_namespaces = 32\n@rc 0\n")
    assert host.user_namespaces_limit == 32
    assert host.evidence["user_namespaces_limit"] == "user.max_user_namespaces = 32"
    assert "user_namespaces_limit" in facts("@ user-namespaces\n@rc 0\n").absent
    assert "user_namespaces_limit" in facts("@ user-namespaces\n@rc 124\n").unknown


def test_a_squashfuse_that_was_not_asked_for_in_time_is_not_known():
    assert "squashfuse" in facts("@ squashfuse\n@rc 124\n").unknown
    assert "squashfuse" in facts("@ squashfuse\n@rc 127\n").absent


def test_the_release_of_libfuse_is_the_first_number_that_the_machine_names():
    host = facts("@ fuse3\n|3.2.1\n|3.2.1\n@rc 0\n")
    assert host.fuse3 == "3.2.1"
    assert host.evidence["fuse3"] == "libfuse3.so, fusermount3 -V: 3.2.1"
    assert "fuse3" in facts("@ fuse3\n@rc 127\n").absent
    assert "fuse3" in facts("@ fuse3\n@rc 124\n").unknown
