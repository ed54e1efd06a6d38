"""Test the parser of each tool with real output of the tool."""

from tests.unit.tables import every_row
from toolkit.probe.evidence import Section
from toolkit.probe.read import launcher, pmix, runtime, slurm, system
from toolkit.runtime import apptainer


def said(text: str, status: int = 0) -> Section:
    return Section("x", tuple(text.splitlines()), status)


NEW_LIST = """MPI plugin types are...
\tnone
\tpmix
\tcray_shasta
\tpmi2
specific pmix plugin versions available: pmix_v4,pmix_v5"""
OLD_LIST = """srun: MPI types are...
srun: cray_shasta
srun: pmi2
srun: none
srun: pmix
srun: pmix_v3"""
OPEN_MPI = "path /usr/bin/mpirun\nreal /usr/bin/orterun\nsays mpirun (Open MPI) 4.1.4"
HYDRA = """path /usr/bin/mpiexec
real /usr/bin/mpiexec.hydra
says HYDRA build details:
says     Version:                                 4.0.2
says     Release Date:                            Thu Apr  7 12:34:45 CDT 2022"""
INTEL = (
    "path /opt/intel/bin/mpirun\nreal /opt/intel/bin/mpirun\n"
    "says Intel(R) MPI Library for Linux* OS, Version 2021.9 Build 20230307"
)


def test_no_default_is_none_however_slurm_writes_it():
    for text in ("none", "(null)"):
        found = slurm.slurm({"slurm": said("slurm 24.11.5"), "slurm-config": said(f"MpiDefault = {text}")})
        assert found is not None
        assert found.mpi_default == "none"


def test_mpi_types_of_slurm_24():
    assert slurm.mpi_types(said(NEW_LIST)) == ("none", "pmix", "cray_shasta", "pmi2", "pmix_v4", "pmix_v5")


def test_mpi_types_of_slurm_21():
    assert slurm.mpi_types(said(OLD_LIST)) == ("cray_shasta", "pmi2", "none", "pmix", "pmix_v3")


def test_mpi_types_of_slurm_before_17_11():
    """Recorded on Biowulf in 2018; source: a comment in the site's settings of ECP-CANDLE/Supervisor."""
    listed = "srun: MPI types are... \nsrun: mpi/pmi2\nsrun: mpi/openmpi\nsrun: mpi/mpich1_p4\nsrun: mpi/none"
    assert slurm.mpi_types(said(listed)) == ("pmi2", "openmpi", "mpich1_p4", "none")


def test_no_mpi_types_where_srun_failed():
    assert slurm.mpi_types(said("srun: fatal: Could not establish a configuration source", 1)) is None


def test_version_and_settings():
    assert slurm.version(said("slurm-wlm 24.11.5")) == "24.11.5"
    assert slurm.version(said("slurm 23.02.7")) == "23.02.7"
    assert slurm.settings(said("MpiDefault              = pmix")) == {"MpiDefault": "pmix"}


def test_the_default_partition_comes_first_and_nodes_are_added_up():
    listed = "long|2|up|64|1|(null)\ndebug*|3|up|8|1|gpu:4\ndebug*|1|up|16|1|(null)"
    assert slurm.partitions(said(listed)) == (("debug", "long"), 4)


def test_a_thousand_nodes_are_counted_as_sinfo_shortens_them():
    """``convert_num_unit`` in SchedMD/slurm:src/common/slurm_protocol_api.c prints 2048 nodes as ``2K``."""
    assert slurm.partitions(said("batch*|2K|up|128|256000|(null)")) == (("batch",), 2048)


@every_row(
    ("said_there", "version"),
    [
        ("Intel(R) MPI Library for Linux* OS, Version 2021.19.0 Build 20260929 (id: 1821d9b)", "2021.19.0"),
        (
            "Intel(R) MPI Library for Linux* OS, Version 2019 Update 9 Build 20200923 (id: abd58e492)",
            "2019.9",
        ),
        # Source: RedHatInsights/insights-core:insights/tests/parsers/test_mpirun.py
        (
            "Intel(R) MPI Library for Linux* OS, Version 2019 Update 08 Build 202010429 (id: e380127cb)",
            "2019.8",
        ),
        ("Intel(R) MPI Library for Linux* OS, Version 2018 Build 20170713 (id: 17594)", "2018"),
        ("Intel(R) MPI Library for Linux* OS, Version 5.1.3 Build 20160120 (build id: 14053)", "5.1.3"),
        ("Intel(R) MPI Library 2021.18 for Linux* OS", "2021.18"),
    ],
)
def test_releases_of_intel_mpi(said_there: str, version: str):
    text = f"path /opt/intel/bin/mpirun\nreal /opt/intel/bin/mpirun\nsays {said_there}"
    (found,) = launcher.launchers(said(text), said("", 127), said("", 124))
    assert (found.implementation, found.version) == ("intelmpi", version)


@every_row(
    ("text", "family", "version"),
    [(OPEN_MPI, "openmpi", "4.1.4"), (HYDRA, "mpich", "4.0.2"), (INTEL, "intelmpi", "2021.9")],
)
def test_launchers_are_told_apart(text, family, version):
    (found,) = launcher.launchers(said(text), said("", 127), said("", 124))
    assert (found.implementation, found.version) == (family, version)
    assert found.leaks is None


@every_row(
    ("text", "version"),
    [
        ("glibc 2.17", "2.17"),
        ("ldd (Ubuntu GLIBC 2.35-0ubuntu3.8) 2.35", "2.35"),
        ("sh: 1: getconf: not found\nldd (GNU libc) 2.28", "2.28"),
        ("getconf: unknown variable 'GNU_LIBC_VERSION'\nmusl libc (x86_64)", None),
    ],
)
def test_the_c_library_is_told_by_getconf_or_by_ldd(text: str, version: str | None):
    assert system.glibc(said(text)) == version


# Recorded on ALCF's Cooley with module mvapich2-2.2. The Hydra of MVAPICH2 reports MPICH's release 3.1.4.
MVAPICH = """path /soft/libraries/mpi/mvapich2-2.2/gcc/bin/mpiexec
real /soft/libraries/mpi/mvapich2-2.2/gcc/bin/mpiexec.hydra
says HYDRA build details:
says     Version:                                 3.1.4
says     Release Date:                            Wed Sep  7 14:33:43 EDT 2016"""


@every_row(
    ("holds", "family", "version"),
    [("MPICH Version\nholds MVAPICH", "mvapich2", None), ("MPICH Version", "mpich", "3.1.4")],
)
def test_the_hydra_of_mvapich_is_told_by_the_library_beside_it(holds, family, version):
    prefix = "/soft/libraries/mpi/mvapich2-2.2/gcc"
    library = f"{prefix}/lib/libmpi.so.12.1.1"
    beside = f"launcher {prefix}/bin/mpiexec\nbeside {library}\nlibrary {library}\nholds {holds}\nlauncher"
    (found,) = launcher.launchers(said(MVAPICH), said("", 127), said(beside))
    assert (found.implementation, found.version, found.library) == (family, version, library)


def test_two_names_of_one_program_are_one_launcher():
    assert (
        len(
            launcher.launchers(
                said(f"{OPEN_MPI}\n{OPEN_MPI.replace('mpirun', 'mpiexec')}"), said(""), said("")
            )
        )
        == 1
    )


def test_what_a_launcher_exports_of_itself_is_seen():
    environment = said(
        "OMPI_MCA_mca_base_component_path=/usr/lib/pmix\nOMPI_MCA_num_procs=1\nPMIX_VERSION=5.0.7a1\nUCX_TLS"
    )
    (found,) = launcher.launchers(said(OPEN_MPI), environment, said("", 124))
    assert found.leaks == ("OMPI_MCA_mca_base_component_path",)
    assert found.pmix == "5.0.7a1"


def test_a_launcher_that_does_not_start_tells_what_it_lacks():
    text = (
        "path /opt/mpi/bin/mpirun\nreal /opt/mpi/bin/orterun\nsays mpirun: error while loading "
        "shared libraries: libopen-rte.so.40: cannot open shared object file: No such file or directory"
    )
    (found,) = launcher.launchers(said(text), said("", 127), said("", 124))
    assert (found.implementation, found.version, found.lacks) == ("unknown", None, ("libopen-rte.so.40",))
    (whole,) = launcher.launchers(said(OPEN_MPI), said("", 127), said("", 124))
    assert whole.lacks == ()


def test_a_launcher_that_started_no_rank_has_unknown_leaks():
    assert launcher.leaks(said("mpirun was unable to find the specified executable")) is None


def test_the_pmix_that_the_plugin_names_is_the_one():
    section = said(
        "plugin /usr/lib64/slurm/mpi_pmix_v4.so\nnamed /opt/pmix/4/lib/libpmix.so.2.9.5\n"
        "file /usr/lib64/libpmix.so.2.13.7\nsays OpenPMIx 5.0.7a1\n"
        "file /opt/pmix/4/lib/libpmix.so.2.9.5\nsays OpenPMIx 4.2.9"
    )
    found = pmix.server(section, ("pmix", "pmix_v4"))
    assert found is not None
    assert found.version == "4.2.9"


def test_a_pmix_that_is_named_and_cannot_be_read_leaves_it_unknown():
    section = said(
        "plugin /usr/lib64/slurm/mpi_pmix_v4.so\nnamed /opt/pmix/4/lib/libpmix.so.2\n"
        "file /usr/lib64/libpmix.so.2.9.5"
    )
    assert pmix.server(section, ("pmix_v4",)) is None


def test_of_several_plugins_the_newest_that_slurm_offers_counts():
    section = said(
        "plugin /s/mpi_pmix_v3.so\nnamed /opt/3/libpmix.so.2.2.32\n"
        "plugin /s/mpi_pmix_v5.so\nnamed /opt/5/libpmix.so.2.13.7\n"
        "file /opt/3/libpmix.so.2.2.32\nfile /opt/5/libpmix.so.2.13.7"
    )
    for types, version in ((("pmix", "pmix_v3", "pmix_v5"), "5.0.7"), (("pmix_v3",), "3.2.2")):
        found = pmix.server(section, types)
        assert found is not None
        assert found.version == version


def test_else_the_one_of_the_plugins_major_version():
    section = said("file /usr/lib64/libpmix.so.2.13.7\nfile /opt/lib/libpmix.so.2.9.5")
    found = pmix.server(section, ("pmix_v4",))
    assert found is not None
    assert found.version == "4.2.9"


def test_of_two_releases_none_is_guessed():
    section = said("file /usr/lib64/libpmix.so.2.13.7\nfile /opt/lib/libpmix.so.2.9.5")
    assert pmix.server(section, ()) is None


def test_the_newest_plugin_of_pmix_is_told_by_its_number():
    section = said("file /a/libpmix.so.2.13.7\nfile /b/libpmix.so.9\nsays OpenPMIx 10.0.0")
    found = pmix.server(section, ("pmix_v5", "pmix_v10"))
    assert found is not None
    assert found.version == "10.0.0"


def test_a_library_of_unknown_name_is_asked_for_its_own_word():
    (found,) = pmix.libraries(said("file /opt/lib/libpmix.so.2.99.0\nsays OpenPMIx 9.1.0"))
    assert (found.version, found.evidence) == ("9.1.0", "its own version text")


def test_runtimes_and_how_they_are_installed():
    found = apptainer.read(
        said("path /usr/bin/apptainer\napptainer version 1.4.5\nsetuid yes\nsetting mount tmp = no")
    )
    assert found is not None
    assert (found.name, found.version, found.setuid) == ("apptainer", "1.4.5", True)
    assert found.settings == {"mount tmp": "no"}
    old = apptainer.read(said("path /usr/bin/singularity\nsingularity-ce version 3.11.4"))
    assert old is not None
    assert (old.name, old.version, old.setuid) == ("singularity-ce", "3.11.4", None)


# Sources: SDSC's Expanse, ABCI (docs.abci.ai, containers), and the packages of el7 to el9.
@every_row(
    ("text", "name", "version"),
    [
        ("SingularityPRO version 3.11-7.el8", "singularity-pro", "3.11-7.el8"),
        ("SingularityPRO version 4.1.7-1.el9", "singularity-pro", "4.1.7-1.el9"),
        ("singularity version 3.8.7-1.el7", "singularity", "3.8.7-1.el7"),
        ("singularity-ce version 4.1.5-focal", "singularity-ce", "4.1.5-focal"),
        ("apptainer version 1.2.5-1.2.el8", "apptainer", "1.2.5-1.2.el8"),
    ],
)
def test_runtimes_say_whose_they_are(text: str, name: str, version: str):
    found = apptainer.read(said(f"path /usr/bin/singularity\n{text}"))
    assert found is not None
    assert (found.name, found.version) == (name, version)


@every_row(
    ("text", "name", "version"),
    [
        ("2.6.1-dist", "singularity", "2.6.1-dist"),
        ("2.1", "singularity", "2.1"),
        ("WARNING: no such locale\n2.4.5-dist", "singularity", "2.4.5-dist"),
        ("something else 2.1", "singularity", ""),
        ("2 programs", "singularity", ""),
    ],
)
def test_singularity_2_prints_its_number_alone(text: str, name: str, version: str):
    found = apptainer.read(said(f"path /usr/bin/singularity\n{text}\nsetuid yes"))
    assert found is not None
    assert (found.name, found.version) == (name, version)


@every_row(("setuid", "unbound"), [("no", ("/lustre:/data", "/root/tools")), ("yes", ("/lustre:/data",))])
def test_what_a_runtime_cannot_bind(setuid: str, unbound: tuple[str, ...]):
    """With setuid, root binds the folder, so the user needs no permission for the folder."""
    text = f"path /a\napptainer version 1.4.5\nsetuid {setuid}\nunbound /lustre:/data\nunseen /root/tools"
    found = apptainer.read(said(text))
    assert found is not None
    assert found.unbound == unbound


def test_of_two_lines_for_one_setting_the_first_counts_that_says_something():
    told = "\n".join(f"setting mount dev = {value}" for value in ("", "minimal", "yes"))
    found = apptainer.read(said(f"path /a\napptainer version 1.3.0\n{told}"))
    assert found is not None
    assert found.settings == {"mount dev": "minimal"}


def test_a_setuid_program_that_the_site_forbids_is_none():
    text = "path /a\napptainer version 1.3.0\nsetuid yes\nsetting allow setuid = no"
    found = apptainer.read(said(text))
    assert found is not None
    assert found.setuid is False


def test_user_namespaces():
    assert runtime.user_namespaces(said("user/max_user_namespaces = 1000")) is True
    assert runtime.user_namespaces(said("unshare: unshare failed: Operation not permitted", 1)) is False
    assert runtime.user_namespaces(said("user/max_user_namespaces = 0", 127)) is False
    assert runtime.user_namespaces(said("user/max_user_namespaces = 10", 127)) is None


APPARMOR = "user/max_user_namespaces = 10\nkernel/apparmor_restrict_unprivileged_userns = 1"


def test_what_root_may_says_nothing_of_others_unless_the_switches_allow_it():
    assert runtime.user_namespaces(said("user/max_user_namespaces = 10\nasked as root")) is True
    assert runtime.user_namespaces(said("asked as root")) is None
    assert runtime.user_namespaces(said(f"{APPARMOR}\nasked as root")) is None
    assert runtime.user_namespaces(said("kernel/unprivileged_userns_clone = 0\nasked as root")) is False


def test_apparmor_may_allow_to_apptainer_what_it_forbids_to_unshare():
    refused = "unshare: write failed /proc/self/uid_map: Operation not permitted"
    profile = "profile /etc/apparmor.d/apptainer\nprofiles read"
    assert runtime.user_namespaces(said(f"{APPARMOR}\n{refused}", 1)) is None
    assert runtime.user_namespaces(said(f"{APPARMOR}\n{profile}\n{refused}", 1)) is True
    assert runtime.user_namespaces(said(f"{APPARMOR}\nasked as root\n{profile}")) is True
    assert runtime.user_namespaces(said(f"{APPARMOR}\nprofiles read\n{refused}", 1)) is False
    assert runtime.user_namespaces(said(f"{APPARMOR}\nasked as root\nprofiles read")) is False
    assert runtime.user_namespaces(said(f"user/max_user_namespaces = 10\n{refused}", 1)) is False
    assert runtime.user_namespaces(said(f"user/max_user_namespaces = 0\n{profile}")) is False


def test_distributions():
    assert system.distribution(('ID="rocky"', 'VERSION_ID="9.4"')) == "rocky 9.4"
    assert system.distribution(("ID=debian", "VERSION_CODENAME=forky")) == "debian (forky)"
    assert system.distribution(('ID="unbalanced',)) is not None
    assert system.distribution(()) is None


def test_glibc_by_either_way():
    assert system.glibc(said("glibc 2.41")) == "2.41"
    assert system.glibc(said("ldd (GNU libc) 2.28")) == "2.28"


def test_gpu_driver_by_either_way():
    kernel = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.183.01  Sun May 12 19:39:15 UTC 2024"
    assert system.gpu_driver(said(kernel)) == "535.183.01"
    open_kernel = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  550.54.15  Release Build"
    assert system.gpu_driver(said(open_kernel)) == "550.54.15"
    assert system.gpu_driver(said("550.54.15, NVIDIA A100-SXM4-40GB")) == "550.54.15"
    assert system.gpu_driver(said("", 127)) is None
