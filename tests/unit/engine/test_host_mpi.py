"""Test which MPI a program loads if a launch mounts the host's MPI over the image's MPI."""

from tests.unit.engine.whole import IMAGE, LAUNCHER, MPICH, absent, host, image, mpi, with_
from toolkit.engine.host_mpi import apply_host_mpi, first_of, is_replaced, is_split, libraries_of, mounted_of
from toolkit.engine.planning.proposal import propose
from toolkit.engine.predict import case_of, predict_plan
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
    assert libraries_of(CENTRE) == {
        "libmpi.so.40",
        "libhwloc.so.15",
        "libopen-pal.so.40",
        "libpmix.so.2",
        "libucp.so.0",
    }


def test_only_what_lies_below_a_mounted_folder_is_in_the_container():
    assert mounted_of(CENTRE, BARE) == {"libmpi.so.40", "libopen-pal.so.40"}
    assert mounted_of(CENTRE, FULL) == {"libmpi.so.40", "libopen-pal.so.40", "libucp.so.0"}
    assert mounted_of(CENTRE, with_(BARE, binds=())) == mounted_of(None, BARE) == frozenset()


def test_a_folder_of_another_name_inside_is_where_it_is_looked_for():
    moved = with_(CENTRE, prefix="/host", library="/host/lib/libmpi.so.40", places={})
    plan = with_(BARE, binds=("/scratch/mpi:/host",), env={"LD_LIBRARY_PATH": "/host/lib"})
    assert mounted_of(moved, plan) == first_of(moved, plan) == {"libmpi.so.40"}


def test_the_loader_takes_first_what_ld_library_path_names():
    elsewhere = with_(FULL, env={"LD_LIBRARY_PATH": "/opt/ucx/lib"})
    assert first_of(CENTRE, elsewhere) == {"libucp.so.0"}
    assert first_of(CENTRE, BARE) == {"libmpi.so.40", "libopen-pal.so.40"}


def test_facts_without_places_count_what_is_below_the_prefix():
    old = with_(CENTRE, places=None)
    assert mounted_of(old, BARE) == first_of(old, BARE) == {"libmpi.so.40", "libopen-pal.so.40"}


def test_a_library_that_is_not_mounted_or_not_looked_for_takes_no_place():
    assert is_replaced(CENTRE, IMAGE, BARE)
    assert is_replaced(CENTRE, IMAGE, with_(BARE, binds=("/tmp",))) is False
    assert is_replaced(CENTRE, IMAGE, with_(BARE, env={"LD_LIBRARY_PATH": "/nix"})) is False
    assert is_replaced(with_(CENTRE, places=None), IMAGE, with_(BARE, binds=("/tmp",))) is False
    assert is_replaced(with_(CENTRE, soname=None), IMAGE, BARE) is None


def test_an_mpi_in_a_folder_of_its_own_below_usr_is_mounted_and_found():
    own = "/usr/lib64/openmpi"
    there = with_(
        CENTRE, prefix=own, library=f"{own}/lib/libmpi.so.40.30.4", places={}, folders=(f"{own}/lib",)
    )
    plan = propose(host(mpis=(there,)), IMAGE, Request(nodes=2), "bind")
    assert own in plan.binds
    assert is_replaced(there, IMAGE, plan)


def test_a_folder_that_an_image_has_of_its_own_is_not_mounted():
    local = with_(
        CENTRE, places={**CENTRE.places, "libpmix.so.2": "/usr/local/lib"}, folders=("/usr/local/lib",)
    )
    assert "/usr/local/lib" not in propose(host(mpis=(local,)), IMAGE, Request(nodes=2), "bind").binds


def test_interfaces_of_components_that_cannot_be_loaded_are_gone():
    both = with_(
        CENTRE,
        interfaces=("pmi2", "pmix"),
        components={"pmix": ("ext3x", "s2")},
        components_need={"pmix_ext3x": ("libpmix.so.2",), "pmix_s2": ("libpmi2.so.0",)},
    )
    on = host(mpis=(both,))
    assert apply_host_mpi(on, image(libraries=("libpmi2.so.0",)), BARE).mpi.interfaces == ("pmi2",)
    assert apply_host_mpi(on, image(libraries=("libpmix.so.2",)), BARE).mpi.interfaces == ("pmix",)
    linked = with_(both, needs=("libpmix.so.2",))
    assert apply_host_mpi(host(mpis=(linked,)), image(libraries=()), BARE).mpi.interfaces == ("pmi2", "pmix")
    untold = with_(both, interfaces=None)
    assert "mpi.interfaces" in apply_host_mpi(host(mpis=(untold,)), IMAGE, BARE).unknown


def test_a_client_whose_release_nobody_told_is_unknown_and_not_absent():
    silent = with_(CENTRE, pmix=None)
    found = apply_host_mpi(host(mpis=(silent,)), image(libraries=("libz.so.1",)), FULL)
    assert "pmix" in found.unknown
    assert "pmix" not in found.absent
    mute = with_(silent, interfaces=("pmi2",), components={}, components_need={})
    assert "pmix" in apply_host_mpi(host(mpis=(mute,)), IMAGE, BARE).absent


def test_what_was_said_of_the_mpi_that_is_not_loaded_is_no_evidence():
    of = image(libraries=("libpmix.so.2",))
    assert of.evidence["mpi.version"]
    found = apply_host_mpi(ON, of, BARE)
    assert {line for name, line in found.evidence.items() if name.partition(".")[0] == "mpi"} == {
        found.evidence["mpi"]
    }


def test_what_stays_behind_is_the_image_s_where_it_has_it():
    of = image(libraries=("libpmix.so.2", "libucp.so.0"), pmix="4.2.2", ucx="1.13.1")
    found = apply_host_mpi(ON, of, BARE)
    assert (found.mpi and found.mpi.version, found.pmix, found.ucx) == ("4.1.4", "4.2.2", "1.13.1")
    assert found.mpi
    assert found.mpi.components == {"pml": ("ob1", "ucx"), "pmix": ("ext3x",)}


def test_components_whose_library_is_nowhere_are_passed_by():
    of = image(libraries=("libpmix.so.2",))
    assert apply_host_mpi(ON, of, BARE).mpi.components == {"pml": ("ob1",), "pmix": ("ext3x",)}
    assert apply_host_mpi(ON, of, FULL).mpi.components == {"pml": ("ob1", "ucx"), "pmix": ("ext3x",)}
    unread = with_(of, libraries=None)
    assert apply_host_mpi(ON, unread, BARE).mpi.components == {"pml": ("ob1", "ucx"), "pmix": ("ext3x",)}


def test_what_a_mounted_ucx_can_send_through_is_not_that_of_the_image():
    of = image(libraries=("libpmix.so.2",), ucx_transports=("ib", "tcp"))
    assert apply_host_mpi(ON, of, BARE).ucx_transports == ("ib", "tcp")
    found = apply_host_mpi(ON, of, FULL)
    assert found.ucx_transports is None
    assert "ucx_transports" in found.unknown


def test_a_libfabric_of_the_image_is_in_reach_where_its_loader_lists_one():
    private = image(libfabric="/opt/venv/lib/mpich/libfabric.so.1", libraries=("libz.so.1",))
    assert "libfabric" in apply_host_mpi(ON, private, BARE).absent
    listed = with_(private, libraries=("libfabric.so.1",))
    assert apply_host_mpi(ON, listed, BARE).libfabric
    assert apply_host_mpi(ON, with_(private, libfabric="/usr/lib/libfabric.so.1"), BARE).libfabric


def test_an_image_of_another_family_stays_as_it_is():
    of = image(mpi=MPICH)
    assert apply_host_mpi(ON, of, BARE) is of


def test_an_image_without_mpi_loads_only_the_library_that_its_programs_need():
    def loads(needed: str, **mpi_of_host) -> bool | None:
        need = {"/opt/probe": needed} if needed else {}
        of = with_(absent(IMAGE, "mpi"), programs=dict.fromkeys(need, ""), programs_need=need)
        return is_replaced(with_(CENTRE, **mpi_of_host), of, BARE)

    mpich = {"implementation": "mpich", "soname": "libmpi.so.12"}
    assert loads("")
    assert loads("libmpi.so.40")
    assert not loads("libmpi.so.12")
    assert loads("libmpi.so.12", **mpich)
    assert not loads("libmpi.so.40", **mpich)
    assert loads("libmpi_abi.so.0", **mpich, version="5.0.1")
    assert not loads("libmpi_abi.so.0", **mpich, version="4.1.3")


def test_a_program_that_needs_another_library_than_the_mounted_one_does_not_start():
    need = {"/opt/probe": "libmpi.so.12"}
    of = with_(absent(IMAGE, "mpi"), programs={"/opt/probe": ""}, programs_need=need)
    told = predict_plan(ON, of, Request(nodes=2), BARE)
    assert told.outcome == "loader-failure"
    assert "libmpi.so.12" in told.because
    assert "libmpi.so.40" in told.because


def test_programs_of_open_mpi_6_keep_half_of_the_image_s():
    def met(of, on=ON):
        return is_split(case_of(on, of, Request(nodes=2), BARE))

    assert met(mpi(version="6.0.0rc2"))
    assert not met(IMAGE)
    assert not met(image(mpi=with_(MPICH, version="2021.13", implementation="intelmpi")))
    assert not met(mpi(version="6.0.0"), host(mpis=(with_(CENTRE, version="6.0.1"),)))
    assert not met(mpi(version="6.0.0"), host(mpis=()))
