"""Test the rules about the host's MPI that a launch mounts over the image's MPI."""

import msgspec

from tests.unit.engine.whole import (
    HOST,
    IMAGE,
    LAUNCHER,
    MPICH,
    RUNTIME,
    absent,
    case,
    host,
    image,
    mpi,
    unread,
    with_,
)
from toolkit.engine.predict import predict_plan

OPT = msgspec.structs.replace(
    LAUNCHER,
    prefix="/opt/mpi",
    library="/opt/mpi/lib/libmpi.so.40.40.7",
    needs=("libpmix.so.2",),
    folders=("/opt/mpi/lib",),
    outside=(),
    glibc_needed="2.34",
    plugins="/opt/mpi/lib/openmpi",
    relocatable=False,
)
OPAL = {"LD_LIBRARY_PATH": "/opt/mpi/lib"}
OMPI_6 = mpi(version="6.0.0rc2", plugins=False)
HALF = image(mpi=OMPI_6.mpi, libraries=("libz.so.1",))
FABRIC = {
    "soname": "libmpi.so.12",
    "needs": ("libfabric.so.1",),
    "places": {"libfabric.so.1": "/opt/mpi/lib"},
    "fabric": "1.5",
}
OF_ITS_OWN = {**FABRIC, "soname": "libmpi.so.40", "places": {"libfabric.so.1": "/opt/mpi/lib/openmpi"}}
ASKS = mpi(fabric_asked="1.8")
# The library of Open MPI 1.10 has the same name as the libraries of MPICH's ABI family.
NAMESAKE = {"implementation": "mpich", "version": "4.1.3", "soname": "libmpi.so.12", "pmix": None}
# conda's programs contain the path of conda's MPI.
OWN_PATH = image(programs={"/opt/conda/train": IMAGE.mpi.library}, programs_fixed=("/opt/conda/train",))
OLD_OPEN_MPI = mpi(version="1.10.2", soname="libmpi.so.12")
NAMED_ALIKE = image(mpi=msgspec.structs.replace(MPICH, soname="libmpi.so.12"))
OF_MPI_4 = image(mpi=msgspec.structs.replace(MPICH, soname="libmpi.so.12", version="4.2.2"), mpi4py="4.0.1")
PLUGINS = {"components_need": {"pml_ucx": ("libucp.so.0",), "pmix_ext3x": ("libmunge.so.2", "libpmix.so.2")}}
OUTSIDE = {**PLUGINS, "needs": (), "outside": ("libmunge.so.2", "libpmix.so.2", "libucp.so.0")}
# The MPI has a component for PMIx and one for Slurm's PMI, and srun offers PMIx.
MIXED = {
    "components": {"pmix": ("ext3x", "s1")},
    "components_need": {"pmix_ext3x": ("libpmix.so.2",), "pmix_s1": ("libpmi.so.0",)},
    "needs": (),
    "outside": ("libpmi.so.0", "libpmix.so.2"),
}
# One of PMIx's components in the MPI's folder needs libraries of the system.
BESIDE = {**PLUGINS, "version": "4.1.4", "needs": (), "outside": ("libmunge.so.2",)}
FULL = image(libraries=("libmunge.so.2", "libpmix.so.2"))
EMPTY = image(mpi=msgspec.structs.replace(IMAGE.mpi, needs=()), libraries=("libz.so.1",))
WITH_UCX = {"needs": ("libpmix.so.2", "libucs.so.0"), "ucx": "1.13.1"}


def provider(**changes):
    return host(mpis=(msgspec.structs.replace(OPT, **changes),))


def bound(on=None, of=IMAGE, **plan):
    return case(on or provider(), of, "bind", **{"binds": ("/opt/mpi",), "env": OPAL, **plan})


def restricted(**settings):
    named = {name.replace("_", " "): value for name, value in settings.items()}
    return with_(provider(), runtime=msgspec.structs.replace(RUNTIME, settings=named))


CRAY = provider(**{**NAMESAKE, "implementation": "cray", "version": "8.1.30"})
FIRES = {
    "bind-lacks-lustre": [bound(CRAY, with_(OF_MPI_4, libraries=("libc.so.6",)))],
    "bind-lacks-mpi-4": [
        bound(provider(**{**NAMESAKE, "version": "3.4.3"}), OF_MPI_4),
        bound(provider(**{**NAMESAKE, "implementation": "cray", "version": "8.1.30"}), OF_MPI_4),
    ],
    "bind-not-allowed": [
        bound(restricted(user_bind_control="no")),
        bound(restricted(enable_overlay="no", enable_underlay="no")),
    ],
    "bind-nothing-to-mount": [
        case(mode="bind"),
        case(host(mpis=()), mode="bind"),
        case(provider(prefix="/work/-/mpi"), mode="bind"),
        case(mode="bind", binds=("/tmp",)),
    ],
    "bind-has-no-effect": [
        bound(of=image(mpi=MPICH)),
        bound(provider(places={}), env={}),
        bound(of=OLD_OPEN_MPI, env={**OPAL, "OPAL_PREFIX": "/opt/mpi"}),
        bound(of=OWN_PATH),
    ],
    "bind-name-of-another": [
        bound(provider(**NAMESAKE), OLD_OPEN_MPI),
        bound(provider(version="1.10.7", soname="libmpi.so.12"), NAMED_ALIKE),
    ],
    "bind-glibc-older": [bound(provider(glibc_needed="2.38")), bound(of=absent(IMAGE, "glibc"))],
    "bind-library-missing": [
        bound(provider(outside=("libfabric.so.1",)), absent(IMAGE, "libfabric")),
        bound(provider(outside=("libmunge.so.2",)), image(libraries=("libz.so.1",))),
        bound(provider(**BESIDE), HALF),
    ],
    "bind-component-lacks-library": [
        bound(provider(**OUTSIDE), EMPTY),
        bound(provider(**MIXED), with_(EMPTY, libraries=("libpmi.so.0",))),
    ],
    "bind-library-older": [
        bound(provider(**FABRIC), ASKS),
        bound(provider(**OF_ITS_OWN), mpi(version="6.0.0rc2", fabric_asked="1.8")),
    ],
    "bind-modules-differ": [bound(provider(**WITH_UCX)), bound(provider(**{**WITH_UCX, "ucx": "1.19.0"}))],
    "bind-plugins-missing": [
        bound(provider(plugins="/srv/openmpi/lib")),
        bound(provider(plugins="/srv/openmpi/lib", version="4.1.4")),
    ],
    "bind-abi-split": [
        bound(provider(version="4.1.8"), OMPI_6),
        bound(provider(relocatable=True), OMPI_6),
    ],
}
QUIET = {
    "bind-lacks-lustre": [
        bound(),
        bound(with_(CRAY, folder_mpis=()), with_(OF_MPI_4, libraries=("liblustreapi.so.1",))),
        bound(CRAY, with_(OF_MPI_4, libraries=("liblustreapi.so.1",))),
        bound(CRAY, with_(OF_MPI_4, libraries=("libc.so.6",)), binds=("/opt/mpi", "/usr/lib64")),
    ],
    "bind-lacks-mpi-4": [
        bound(),
        case(host(folder_mpis=()), OF_MPI_4, "bind"),
        bound(provider(**{**NAMESAKE, "version": "4.1.3"}), OF_MPI_4),
        bound(provider(**{**NAMESAKE, "implementation": "cray", "version": "9.0.1"}), OF_MPI_4),
        bound(provider(**{**NAMESAKE, "version": "3.4.3"}), with_(OF_MPI_4, mpi4py="3.1.6")),
        bound(provider(**{**NAMESAKE, "version": "3.4.3"}), with_(OF_MPI_4, mpi4py="4.1.2")),
    ],
    "bind-not-allowed": [
        bound(),
        bound(restricted(enable_overlay="no")),
        bound(restricted(user_bind_control="no"), binds=()),
        bound(absent(provider(), "runtime")),
        case(mode="bind", binds=("/tmp",)),
    ],
    "bind-nothing-to-mount": [bound(), bound(with_(provider(), folder_mpis=()))],
    "bind-has-no-effect": [bound(), case(mode="bind"), bound(of=with_(OWN_PATH, programs_fixed=()))],
    "bind-name-of-another": [
        bound(),
        bound(provider(**NAMESAKE)),
        bound(provider(**NAMESAKE), NAMED_ALIKE),
    ],
    "bind-glibc-older": [
        bound(),
        case(mode="bind"),
        bound(provider(glibc_needed="2.38", needs=()), image(mpi=MPICH)),
        bound(provider(needs=()), absent(image(mpi=MPICH), "glibc")),
        bound(host(mpis=())),
    ],
    "bind-library-missing": [
        bound(),
        bound(of=image(mpi=MPICH)),
        bound(provider(outside=("libhwloc.so.15",))),
        bound(provider(outside=("libmunge.so.2",)), image(libraries=("libmunge.so.2",))),
        bound(provider(**BESIDE), image(libraries=("libz.so.1",))),
    ],
    "bind-component-lacks-library": [
        bound(),
        bound(of=image(mpi=MPICH)),
        bound(provider(**OUTSIDE), FULL),
        bound(provider(**{**OUTSIDE, "components_need": {"pml_ucx": ("libucp.so.0",)}}), EMPTY),
        bound(provider(**OUTSIDE, plugins="/usr/lib/openmpi"), EMPTY),
        bound(provider(**{**MIXED, "components": {"pmix": ("pmix3x", "s1")}}), EMPTY),
        bound(host(mpis=())),
    ],
    "bind-library-older": [
        bound(),
        bound(provider(**FABRIC)),
        bound(provider(**{**FABRIC, "fabric": "1.8"}), ASKS),
        bound(provider(**OF_ITS_OWN), ASKS),
        bound(provider(**{**OF_ITS_OWN, "needs": ()}), mpi(version="6.0.0rc2", fabric_asked="1.8")),
        bound(provider(**FABRIC), ASKS, env={"LD_LIBRARY_PATH": "/opt/mpi/lib64"}),
        bound(host(mpis=()), ASKS),
    ],
    "bind-modules-differ": [
        bound(),
        bound(provider(**{**WITH_UCX, "ucx": "1.15.0"})),
        bound(of=absent(IMAGE, "ucx")),
    ],
    "bind-plugins-missing": [
        bound(),
        bound(provider(plugins="/srv/lib"), env={"OMPI_MCA_mca_base_component_path": "/srv/lib"}),
        bound(provider(plugins="/srv/lib", version="4.1.6")),
        bound(provider(plugins=None)),
    ],
    "bind-abi-split": [
        bound(),
        bound(of=OMPI_6),
        bound(provider(version="4.1.8")),
        bound(provider(version="6.0.0"), OMPI_6),
        bound(host(mpis=()), OMPI_6),
    ],
}
UNDECIDED = {
    "bind-lacks-lustre": [bound(CRAY, unread(OF_MPI_4, "libraries"))],
    "bind-lacks-mpi-4": [
        bound(provider(**{**NAMESAKE, "version": "3.4.3"}), unread(OF_MPI_4, "mpi4py")),
    ],
    "bind-nothing-to-mount": [
        bound(provider(library=None)),
        case(host(mpis=(), fabrics=("slingshot",)), mode="bind"),
    ],
    "bind-has-no-effect": [
        bound(provider(soname=None)),
        bound(of=mpi(soname=None)),
        bound(
            of=mpi(version="1.10.2", soname="libmpi.so.12", plugins=None),
            env={**OPAL, "OPAL_PREFIX": "/opt/mpi"},
        ),
    ],
    "bind-glibc-older": [bound(provider(glibc_needed=None)), bound(unread(HOST, "mpis"))],
    "bind-library-missing": [
        bound(provider(outside=None)),
        bound(provider(outside=("libmunge.so.2",)), unread(IMAGE, "libraries")),
    ],
    "bind-component-lacks-library": [bound(provider(**OUTSIDE), unread(EMPTY, "libraries"))],
    "bind-library-older": [bound(provider(**{**FABRIC, "fabric": None}), ASKS)],
    "bind-modules-differ": [bound(provider(**{**WITH_UCX, "ucx": None}))],
}
OUTCOMES = {
    "bind-lacks-mpi-4": "loader-failure",
    "bind-not-allowed": "unavailable",
    "bind-nothing-to-mount": "unavailable",
    "bind-has-no-effect": "singletons",
    "bind-name-of-another": "loader-failure",
    "bind-glibc-older": "loader-failure",
    "bind-library-missing": "loader-failure",
    "bind-component-lacks-library": "loader-failure",
    "bind-library-older": "loader-failure",
    "bind-modules-differ": "loader-failure",
    "bind-plugins-missing": "init-failure",
    "bind-abi-split": "init-failure",
}


def test_components_of_another_release_of_one_series_may_do():
    told = [
        predict_plan(c.host_facts, c.original_facts, c.request, c.plan).outcome
        for c in FIRES["bind-plugins-missing"]
    ]
    assert told == ["init-failure", "unknown"]


def test_what_is_made_for_glibc_does_not_run_on_musl():
    of = bound(of=absent(IMAGE, "glibc"))
    told = predict_plan(of.host_facts, of.original_facts, of.request, of.plan)
    assert told.outcome == "loader-failure"
    assert told.because.endswith("needs glibc 2.34; the image has no glibc")


def test_an_open_mpi_of_a_person_stops_no_rule():
    home = provider(prefix="~/openmpi", library="~/openmpi/lib/libmpi.so.40", plugins="~/openmpi/lib/openmpi")
    assert predict_plan(home, IMAGE, bound().request, bound(binds=("/tmp",)).plan).outcome == "unavailable"


def test_what_is_mounted_and_not_looked_for_has_no_effect():
    of = FIRES["bind-has-no-effect"][1]
    told = predict_plan(of.host_facts, of.original_facts, of.request, of.plan)
    assert "bind-has-no-effect" in told.findings
    assert "takes the place" not in told.because


def test_a_program_of_mpich_that_loads_an_old_open_mpi_ends_in_a_way_that_nobody_measured():
    of = FIRES["bind-name-of-another"][1]
    assert predict_plan(of.host_facts, of.original_facts, of.request, of.plan).outcome == "unknown"


def test_a_prefix_for_an_mpi_that_is_not_loaded_hides_the_components_of_the_one_that_is():
    of = FIRES["bind-has-no-effect"][2]
    assert predict_plan(of.host_facts, of.original_facts, of.request, of.plan).outcome == "init-failure"
