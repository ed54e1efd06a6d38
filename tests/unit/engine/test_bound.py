"""What is loaded where the host's MPI is mounted over the image's."""

from tests.unit.engine.whole import IMAGE, LAUNCHER, MPICH, host, image, mpi, with_
from toolkit.engine.bound import carried, first, halves, loaded, mounted
from toolkit.engine.predict import case_of
from toolkit.model.prediction import Plan, Request

PREFIX = "/opt/centre/openmpi"
CENTRE = with_(
    LAUNCHER,
    version="4.1.4",
    pmix="5.0.7",
    prefix=PREFIX,
    library=f"{PREFIX}/lib/libmpi.so.40.30.4",
    needs=("libhwloc.so.15", "libopen-pal.so.40"),
    components={"pml": ("ob1", "ucx"), "pmix": ("ext3x",)},
    components_need={"pml_ucx": ("libucp.so.0",), "pmix_ext3x": ("libpmix.so.2",)},
    places={
        "libhwloc.so.15": "/usr/lib",
        "libopen-pal.so.40": f"{PREFIX}/lib",
        "libpmix.so.2": "/usr/lib",
        "libucp.so.0": "/opt/ucx/lib",
    },
    folders=(f"{PREFIX}/lib", "/opt/ucx/lib", "/usr/lib"),
    outside=("libhwloc.so.15", "libpmix.so.2", "libucp.so.0"),
    ucx="1.15.0",
    plugins=f"{PREFIX}/lib/openmpi",
)
ON = host(mpis=(CENTRE,))
BARE = Plan(
    mode="bind", launcher=("srun", "--mpi=pmix"), binds=(PREFIX,), env={"LD_LIBRARY_PATH": f"{PREFIX}/lib"}
)
FULL = Plan(
    mode="bind",
    launcher=("srun", "--mpi=pmix"),
    binds=(PREFIX, "/opt/ucx/lib:/opt/ucx/lib:ro"),
    env={"LD_LIBRARY_PATH": f"{PREFIX}/lib:/opt/ucx/lib"},
)


def test_what_comes_with_an_mpi_is_its_own_and_what_its_components_load():
    assert carried(CENTRE) == {
        "libmpi.so.40",
        "libhwloc.so.15",
        "libopen-pal.so.40",
        "libpmix.so.2",
        "libucp.so.0",
    }


def test_only_what_lies_below_a_mounted_folder_is_in_the_container():
    assert mounted(CENTRE, BARE) == {"libmpi.so.40", "libopen-pal.so.40"}
    assert mounted(CENTRE, FULL) == {"libmpi.so.40", "libopen-pal.so.40", "libucp.so.0"}
    assert mounted(CENTRE, with_(BARE, binds=())) == mounted(None, BARE) == frozenset()


def test_a_folder_of_another_name_inside_is_where_it_is_looked_for():
    moved = with_(CENTRE, prefix="/host", library="/host/lib/libmpi.so.40", places={})
    plan = with_(BARE, binds=("/scratch/mpi:/host",), env={"LD_LIBRARY_PATH": "/host/lib"})
    assert mounted(moved, plan) == first(moved, plan) == {"libmpi.so.40"}


def test_the_loader_takes_first_what_ld_library_path_names():
    elsewhere = with_(FULL, env={"LD_LIBRARY_PATH": "/opt/ucx/lib"})
    assert first(CENTRE, elsewhere) == {"libucp.so.0"}
    assert first(CENTRE, BARE) == {"libmpi.so.40", "libopen-pal.so.40"}


def test_facts_without_places_count_what_is_below_the_prefix():
    old = with_(CENTRE, places=None)
    assert mounted(old, BARE) == first(old, BARE) == {"libmpi.so.40", "libopen-pal.so.40"}


def test_what_stays_behind_is_the_image_s_where_it_has_it():
    of = image(libraries=("libpmix.so.2", "libucp.so.0"), pmix="4.2.2", ucx="1.13.1")
    found = loaded(ON, of, BARE)
    assert (found.mpi and found.mpi.version, found.pmix, found.ucx) == ("4.1.4", "4.2.2", "1.13.1")
    assert found.mpi
    assert found.mpi.components == {"pml": ("ob1", "ucx"), "pmix": ("ext3x",)}


def test_components_whose_library_is_nowhere_are_passed_by():
    of = image(libraries=("libpmix.so.2",))
    assert loaded(ON, of, BARE).mpi.components == {"pml": ("ob1",), "pmix": ("ext3x",)}
    assert loaded(ON, of, FULL).mpi.components == {"pml": ("ob1", "ucx"), "pmix": ("ext3x",)}
    unread = with_(of, libraries=None)
    assert loaded(ON, unread, BARE).mpi.components == {"pml": ("ob1", "ucx"), "pmix": ("ext3x",)}


def test_what_a_mounted_ucx_can_send_through_is_not_that_of_the_image():
    of = image(libraries=("libpmix.so.2",), ucx_transports=("ib", "tcp"))
    assert loaded(ON, of, BARE).ucx_transports == ("ib", "tcp")
    found = loaded(ON, of, FULL)
    assert found.ucx_transports is None
    assert "ucx_transports" in found.unknown


def test_a_libfabric_of_the_image_is_in_reach_where_its_loader_lists_one():
    private = image(libfabric="/opt/venv/lib/mpich/libfabric.so.1", libraries=("libz.so.1",))
    assert "libfabric" in loaded(ON, private, BARE).absent
    listed = with_(private, libraries=("libfabric.so.1",))
    assert loaded(ON, listed, BARE).libfabric
    assert loaded(ON, with_(private, libfabric="/usr/lib/libfabric.so.1"), BARE).libfabric


def test_an_image_of_another_family_stays_as_it_is():
    of = image(mpi=MPICH)
    assert loaded(ON, of, BARE) is of


def test_programs_of_open_mpi_6_keep_half_of_the_image_s():
    def met(of, on=ON):
        return halves(case_of(on, of, Request(nodes=2), BARE))

    assert met(mpi(version="6.0.0rc2"))
    assert not met(IMAGE)
    assert not met(image(mpi=with_(MPICH, version="2021.13", implementation="intelmpi")))
    assert not met(mpi(version="6.0.0"), host(mpis=(with_(CENTRE, version="6.0.1"),)))
    assert not met(mpi(version="6.0.0"), host(mpis=()))
