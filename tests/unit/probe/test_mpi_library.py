"""Test which MPI library belongs to a launcher of the host, with recorded and constructed probe output."""

from pathlib import Path

from tests.unit.tables import every_row
from toolkit.probe.evidence import Section
from toolkit.probe.probe import load
from toolkit.probe.read import launcher, mpi_library

EVIDENCE = Path(__file__).parents[2] / "evidence"


def said(text: str, status: int = 0) -> Section:
    return Section("x", tuple(text.splitlines()), status)


def test_the_distribution_s_open_mpi_of_the_virtual_cluster():
    (mpi,) = load(EVIDENCE / "virtual-cluster-login.txt").mpis or ()
    assert mpi.prefix == "/usr"
    assert mpi.library == "/usr/lib/x86_64-linux-gnu/libmpi.so.40.40.7"
    assert mpi.soname == "libmpi.so.40"
    assert mpi.interfaces == ("pmix",)
    assert {"libpmix.so.2", "libucp.so.0", "libfabric.so.1"} <= set(mpi.needs or ())
    assert "libc.so.6" not in (mpi.needs or ())
    assert mpi.glibc_needed == "2.38"
    assert (mpi.plugins, mpi.relocatable) == (None, False)
    assert mpi.outside == ()
    assert mpi.ucx == "1.18.1"


def test_several_installations_on_path_in_its_order_each_with_its_library():
    mpis = load(EVIDENCE / "several-mpis.txt").mpis or ()
    assert [(m.implementation, m.version) for m in mpis] == [
        ("openmpi", "4.1.8"),
        ("intelmpi", "2021.14"),
        ("mpich", "4.2.3"),
    ]
    assert [m.library for m in mpis] == [
        "/opt/openmpi-4.1.8/lib/libmpi.so.40",
        "/opt/impi_rt-2021.14.1/lib/libmpi.so.12",
        "/opt/mpich-4.2.3/lib/libmpi.so.12",
    ]
    assert [m.soname for m in mpis] == ["libmpi.so.40", "libmpi.so.12", "libmpi.so.12"]
    assert [m.interfaces for m in mpis] == [("pmix",), ("pmi1", "pmi2"), ("pmi1", "pmi2")]
    assert [m.relocatable for m in mpis] == [True, True, True]
    assert [m.prefix for m in mpis] == [
        "/opt/openmpi-4.1.8",
        "/opt/impi_rt-2021.14.1",
        "/opt/mpich-4.2.3",
    ]
    assert mpis[0].folders == (
        "/opt/openmpi-4.1.8/lib",
        "/opt/openmpi-4.1.8/lib/openmpi",
        "/lib/x86_64-linux-gnu",
    )
    assert mpis[1].needs == ()
    assert [m.outside for m in mpis] == [("libz.so.1",), (), ()]
    assert [m.ucx for m in mpis] == ["1.18.1", None, "1.18.1"]
    assert mpis[1].leaks is None


OPEN_MPI = (
    "launcher /usr/bin/mpirun\nbeside /l/libmpi.so.40.30.4\n"
    "library /l/libmpi.so.40.30.4\nfound /l/libmpi.so.40"
)
HOLDS = f"{OPEN_MPI}\nnames libmpi.so.40\nholds ompi_mpi_comm_world\nfollowed yes"


def of(text: str, implementation: str = "openmpi") -> mpi_library.MpiLibrary:
    found = mpi_library.of_launcher("/usr/bin/mpirun", implementation, said(text))
    assert found is not None
    return found


@every_row(
    ("component", "interfaces"),
    [
        ("mca_pmix_ext3x.so", ("pmix",)),
        ("mca_pmix_s1.so", ("pmi1",)),
        ("mca_pmix_s2.so", ("pmi2",)),
        ("mca_pmix_flux.so", ()),
    ],
)
def test_components_that_are_files_tell_the_interfaces(component, interfaces):
    library = of(f"{HOLDS}\nplugins /l/openmpi\ncomponent {component}")
    assert library.interfaces == interfaces
    assert library.plugins == "/l/openmpi"
    assert not library.is_relocatable(())


def test_a_library_that_could_not_be_followed_leaves_what_it_needs_unknown():
    library = of(HOLDS.replace("followed yes", ""))
    assert library.interfaces is None
    assert mpi_library.sonames(library) is None
    assert mpi_library.folders(library) is None
    assert mpi_library.glibc_needed(library, "/usr") is None


def test_a_library_of_another_kind_is_not_the_launchers():
    assert mpi_library.of_launcher("/usr/bin/mpirun", "mpich", said(HOLDS)) is None
    loaders = said(f"launcher /opt/bin/mpirun\nlauncher\n{HOLDS.partition(chr(10))[2]}")
    found = mpi_library.of_launcher("/opt/bin/mpirun", "openmpi", loaders)
    assert found is not None
    assert found.path == "/l/libmpi.so.40.30.4"


def test_what_is_not_found_is_needed_all_the_same():
    library = of(f"{HOLDS}\nneeds libucp.so.0\nneeds libm.so.6 /lib/libm.so.6")
    assert mpi_library.sonames(library) == ("libucp.so.0",)
    assert mpi_library.folders(library) == ("/l",)


def test_a_launcher_that_tells_its_ranks_where_it_is_can_be_moved():
    library = of(f"{HOLDS}\nneeds libhwloc.so.15 /l/libhwloc.so.15")
    assert library.is_relocatable(("OPAL_PREFIX",))
    assert not library.is_relocatable(())
    assert not library.is_relocatable(None)
    assert of(f"{HOLDS}\norigin /l/libmpi.so.40.30.4").is_relocatable(None)
    assert not of(f"{HOLDS}\nneeds libucs.so.0 /l/libucs.so.0\norigin /l/libucs.so.0").is_relocatable(None)


def test_mvapich_and_mpich_are_told_apart():
    assert of(HOLDS.replace("ompi_mpi_comm_world", "MVAPICH"), "mvapich2").path
    assert of(HOLDS.replace("ompi_mpi_comm_world", "MPIR_CVAR_"), "mpich").path
    assert of(HOLDS.replace("ompi_mpi_comm_world", "nothing"), "unknown").soname == "libmpi.so.40"


def test_a_program_that_does_not_say_what_it_is_counts_only_alone():
    silent = "path /o/bin/mpiexec.x\nreal /o/bin/mpiexec.x\nsays usage"
    hydra = "path /o/bin/mpiexec\nreal /o/bin/mpiexec\nsays HYDRA build details:\nsays Version: 4.0.2"
    both = launcher.launchers(said(f"{silent}\n{hydra}"), said("", 127), said(""))
    assert [m.launcher for m in both] == ["/o/bin/mpiexec"]
    alone = launcher.launchers(said(silent), said("", 127), said(""))
    assert [(m.implementation, m.library) for m in alone] == [("unknown", None)]


def test_what_lies_elsewhere_is_outside_by_whatever_link_it_is_found():
    needs = "needs libevent.so.7 /lib/libevent.so.7\nneeds libucp.so.0 /opt/ucx/lib/libucp.so.0"
    library = of(
        f"{HOLDS}\n{needs}\nneeds libgone.so.1\nfolder /lib /usr/lib\nfolder /opt/ucx/lib /opt/ucx/lib"
    )
    assert mpi_library.loaded_from_outside(library, "/usr") == ("libgone.so.1", "libucp.so.0")
    assert mpi_library.loaded_from_outside(library, "/us") == ("libevent.so.7", "libgone.so.1", "libucp.so.0")
    assert mpi_library.loaded_from_outside(of(HOLDS.replace("followed yes", "")), "/usr") is None


def test_a_ucx_that_names_two_releases_is_not_told():
    assert mpi_library.ucx(of(f"{HOLDS}\nucx 1.13.1\nucx 1.13.1")) == "1.13.1"
    assert mpi_library.ucx(of(f"{HOLDS}\nucx 1.13.1\nucx 1.18.1")) is None


CENTRE = """launcher /opt/centre/openmpi/bin/mpirun
beside /opt/centre/openmpi/lib/libmpi.so.40.30.4
library /opt/centre/openmpi/lib/libmpi.so.40.30.4
found /opt/centre/openmpi/lib/libmpi.so.40
names libmpi.so.40
holds ompi_mpi_comm_world
followed yes
needs libopen-pal.so.40 /opt/centre/openmpi/lib/libopen-pal.so.40
needs libhwloc.so.15 /lib/x86_64-linux-gnu/libhwloc.so.15
needs libfabric.so.1 /srv/ofi/lib/libfabric.so.1
folder /lib/x86_64-linux-gnu /usr/lib/x86_64-linux-gnu
folder /opt/centre/openmpi/lib /opt/centre/openmpi/lib
folder /srv/ofi/lib /srv/ofi/lib
has mca_pml_ob1_component
has mca_btl_tcp_component
fabric 1.10
fabric 1.9
fabric nonsense
glibc GLIBC_2.36 /opt/centre/openmpi/lib/libmpi.so.40.30.4
glibc GLIBC_2.28 /opt/centre/openmpi/lib/libopen-pal.so.40
glibc GLIBC_2.38 /lib/x86_64-linux-gnu/libhwloc.so.15
plugins /opt/centre/openmpi/lib/openmpi
component mca_pmix_ext3x.so
takes mca_pmix_ext3x.so libpmix.so.2 /usr/lib/x86_64-linux-gnu/libpmix.so.2
takes mca_pmix_ext3x.so libmunge.so.2
takes mca_pmix_ext3x.so libmpi.so.40 /opt/centre/openmpi/lib/libmpi.so.40
takes mca_pmix_ext3x.so libc.so.6 /lib/x86_64-linux-gnu/libc.so.6
component mca_pml_ucx.so
takes mca_pml_ucx.so libucp.so.0 /opt/ucx/lib/libucp.so.0
component mca_btl_vader.so
"""


def centre(text: str = CENTRE) -> mpi_library.MpiLibrary:
    found = mpi_library.of_launcher("/opt/centre/openmpi/bin/mpirun", "openmpi", said(text))
    assert found is not None
    return found


def test_components_are_told_by_framework_whether_they_are_files_or_built_in():
    assert centre().components == {"btl": ("tcp", "vader"), "pml": ("ob1", "ucx"), "pmix": ("ext3x",)}


def test_what_a_component_loads_and_the_library_does_not_is_told_apart():
    library = centre()
    assert mpi_library.sonames(library) == ("libfabric.so.1", "libhwloc.so.15", "libopen-pal.so.40")
    assert mpi_library.component_needs(library) == {
        "pml_ucx": ("libucp.so.0",),
        "pmix_ext3x": ("libmunge.so.2", "libpmix.so.2"),
    }
    assert mpi_library.component_needs(centre(CENTRE.replace("followed yes\n", ""))) is None


def test_places_are_the_folders_of_all_that_was_found():
    places = mpi_library.places(centre())
    assert places == {
        "libfabric.so.1": "/srv/ofi/lib",
        "libhwloc.so.15": "/lib/x86_64-linux-gnu",
        "libopen-pal.so.40": "/opt/centre/openmpi/lib",
        "libpmix.so.2": "/usr/lib/x86_64-linux-gnu",
        "libucp.so.0": "/opt/ucx/lib",
    }
    assert "/opt/ucx/lib" in (mpi_library.folders(centre()) or ())
    assert mpi_library.places(centre(CENTRE.replace("followed yes\n", ""))) is None


def test_what_components_load_is_outside_as_well():
    assert mpi_library.loaded_from_outside(centre(), "/opt/centre/openmpi") == (
        "libfabric.so.1",
        "libhwloc.so.15",
        "libmunge.so.2",
        "libpmix.so.2",
        "libucp.so.0",
    )


def test_libraries_of_the_system_stay_behind_and_so_does_the_c_library_that_they_need():
    assert mpi_library.glibc_needed(centre(), "/opt/centre/openmpi") == "2.36"
    assert mpi_library.glibc_needed(centre(), "/usr") == "2.38"
    other = CENTRE.replace("GLIBC_2.38 /lib/x86_64-linux-gnu/libhwloc", "GLIBC_2.38 /srv/hwloc/libhwloc")
    assert mpi_library.glibc_needed(centre(other), "/opt/centre/openmpi") == "2.38"


def test_the_newest_interface_of_libfabric_is_told_by_number():
    assert mpi_library.fabric(centre()) == "1.10"
    assert mpi_library.fabric(centre(CENTRE.replace("fabric 1.", "fabric x"))) is None


def test_mpich_tells_its_device_as_its_option_of_configure_names_it():
    text = (
        "launcher /opt/mpich/bin/mpiexec\nbeside /opt/mpich/lib/libmpi.so.12\n"
        "library /opt/mpich/lib/libmpi.so.12\n"
        "found /opt/mpich/lib/libmpi.so.12\nholds MPICH Version\ndevice ch4:ofi ucx\nfollowed yes"
    )
    found = mpi_library.of_launcher("/opt/mpich/bin/mpiexec", "mpich", said(text))
    assert found is not None
    assert found.device == "ch4:ofi,ucx"
    other = mpi_library.of_launcher(
        "/opt/mpich/bin/mpiexec", "mpich", said(text.replace("ch4:ofi ucx", "ch4"))
    )
    assert other is not None
    assert other.device is None


def test_an_answer_that_was_cut_leaves_what_the_library_needs_unknown():
    cut = mpi_library.of_launcher("/opt/centre/openmpi/bin/mpirun", "openmpi", said(CENTRE, 124))
    assert cut is not None
    assert (cut.interfaces, mpi_library.sonames(cut), mpi_library.component_needs(cut)) == (None, None, None)
    ended = mpi_library.of_launcher(
        "/opt/centre/openmpi/bin/mpirun", "openmpi", said(f"{CENTRE}described yes\nlibrary /x", 124)
    )
    assert ended is not None
    assert ended.interfaces == ("pmix",)


def test_a_library_in_a_folder_of_cray_is_told_without_a_launcher():
    folder = "/opt/cray/pe/mpich/8.1.29/ofi/gnu/9.1"
    text = f"""launcher -
beside {folder}/lib/libmpi_gnu_91.so.12
library {folder}/lib/libmpi_gnu_91.so.12
found {folder}/lib-abi-mpich/libmpi.so.12
names libmpi.so.12
holds CRAY MPICH
holds PMI2_Init
followed yes
needs libpmi2.so.0 /opt/cray/pe/lib64/libpmi2.so.0
folder /opt/cray/pe/lib64 /opt/cray/pe/lib64
described yes
launcher"""
    (mpi,) = launcher.of_folders(said(text), said(""))
    assert (mpi.implementation, mpi.version, mpi.launcher) == ("cray", "8.1.29", "")
    assert (mpi.prefix, mpi.library) == (folder, f"{folder}/lib-abi-mpich/libmpi.so.12")
    assert (mpi.soname, mpi.interfaces, mpi.outside) == ("libmpi.so.12", ("pmi2",), ("libpmi2.so.0",))
    assert mpi.places == {"libpmi2.so.0": "/opt/cray/pe/lib64"}


def test_a_library_beside_a_launcher_is_told_once():
    file = "/opt/mpich/lib/libmpi.so.12"
    alone = f"launcher -\nbeside {file}\nlibrary {file}\nholds ParaStation"
    beside = f"launcher /opt/mpich/bin/mpirun\nbeside {file}\n{alone}"
    assert launcher.of_folders(said(beside), said("")) == ()
    (mpi,) = launcher.of_folders(said(alone), said(""))
    assert (mpi.implementation, mpi.version) == ("parastation", None)
