"""Test the matrix's list of launches, and the command of each launch."""

import shlex

import msgspec

from tests.matrix.launches import (
    Launch,
    inherited,
    little_memlock,
    mode_of,
    naive,
    plain,
    planned,
    shape,
    small_shm,
    traps,
    with_central,
)
from tests.matrix.mending import mended
from tests.matrix.record import ImageRecord, Truth, changed, encoded, image_record, load
from tests.matrix.run import same_image
from tests.matrix.said import heard
from tests.matrix.table import page
from toolkit.model.facts import ContainerRuntime, HostFacts, ImageFacts, SlurmFacts
from toolkit.model.mpifacts import HostMpi, ImageMpi
from toolkit.model.prediction import Plan, Request

HOST = HostFacts(
    place="cluster x",
    slurm=SlurmFacts(version="24.11.5", mpi_types=("none", "pmi2", "pmix"), mpi_default="none", nodes=2),
    mpis=(HostMpi(implementation="openmpi", version="5.0.7", launcher="/usr/bin/mpirun", pmix="5.0.7"),),
    runtime=ContainerRuntime(name="apptainer", version="1.4.5", path="/usr/bin/apptainer", setuid=False),
)
MPI = ImageMpi(
    implementation="mpich", version="4.1.3", library="/l/libmpi.so.12", interfaces=("pmi1", "pmi2")
)
IMAGE = ImageFacts(path="x.sif", format="sif", mpi=MPI)
TWO = Request(nodes=2, ranks_per_node=1)


def launched(name, **other):
    return Launch("image", "pmix", name, "naive", naive(name, HOST), other.pop("request", TWO), **other)


def test_what_a_person_types_is_the_launcher_and_the_image():
    words = shlex.split(launched("srun-pmi2").argv())
    assert words[0] == "srun"
    assert words[-5:] == ["--mpi=pmi2", "singularity", "exec", "IMAGE", "/opt/probe"]
    assert launched("mpirun-host").argv() == "mpirun -n 2 singularity exec IMAGE /opt/probe"
    assert launched("mpirun-container").argv() == "singularity exec IMAGE mpirun -n 2 /opt/probe"


def test_srun_alone_is_the_mode_that_is_slurms_default():
    other = msgspec.structs.replace(HOST, slurm=msgspec.structs.replace(HOST.slurm, mpi_default="pmix_v5"))
    nothing = msgspec.structs.replace(HOST, slurm=msgspec.structs.replace(HOST.slurm, mpi_default="(null)"))
    modes = [mode_of("srun", host) for host in (HOST, other, nothing)]
    assert modes == ["srun-none", "srun-pmix", "srun-none"]


def test_a_launcher_of_the_host_is_tried_in_a_batch_job_and_from_the_login_node():
    direct = launched("mpirun-host", request=Request(nodes=2, ranks_per_node=1, batch=False))
    assert (direct.start, direct.argv().split()[0]) == ("direct", "salloc")
    starts = [x.start for x in plain("image", "pmix", HOST) if x.launch == "mpirun-host"]
    assert set(starts) == {"batch", "direct"}


def test_every_name_is_the_name_of_one_launch():
    found = [
        *plain("image", "pmix", HOST),
        *planned("image", "pmix", HOST, IMAGE),
        *traps("image", "pmix", HOST, "srun-pmi2", IMAGE),
        *small_shm("image", "pmix", HOST, "srun-pmi2", IMAGE),
        *little_memlock("image", "pmix", HOST, "srun-pmi2", IMAGE),
    ]
    names = [launch.name for launch in found]
    assert len(names) == len(set(names))
    assert {shape(launch.request) for launch in found} == {"2x1", "2x2", "1x2"}


def test_what_the_engine_proposes_is_run_only_where_it_is_something_else():
    typed = {launch.argv("apptainer") for launch in plain("image", "pmix", HOST)}
    proposed = list(planned("image", "pmix", HOST, IMAGE))
    assert proposed
    assert not typed & {launch.argv("apptainer") for launch in proposed}


def test_a_plan_that_takes_a_whole_job_script_is_no_cell():
    image = msgspec.structs.replace(
        IMAGE,
        mpi=msgspec.structs.replace(MPI, implementation="openmpi", version="5.0.9", launcher="/o/mpirun"),
    )
    inside = [x for x in planned("image", "pmix", HOST, image) if x.launch == "mpirun-container"]
    assert {shape(x.request) for x in inside} == {"1x2"}


def test_a_variable_of_a_trap_is_exported_and_told_to_the_engine():
    launch = launched("srun-pmix", exports={"OMPI_MCA_btl": "open ib"})
    assert launch.script("/x.sif", "apptainer").startswith("export OMPI_MCA_btl='open ib'\nexec srun ")
    assert inherited(HOST, launch.exports, {"shm": 5}).environment == {"OMPI_MCA_btl": "open ib"}
    assert inherited(HOST, {}, {"shm": 5}).shm == 5


def test_a_limit_is_set_in_the_shell_that_launches():
    (launch, _) = little_memlock("image", "pmix", HOST, "srun-pmi2", IMAGE)
    assert launch.script("/x.sif", "apptainer").startswith("ulimit -l 64\nexec srun ")
    assert inherited(HOST, {}, launch.host_changes).locked_memory == 65536


def test_a_record_is_written_whole_and_read_again(tmp_path):
    folder = tmp_path / "truth"
    cell = launched("srun").cell(argv="x", outcome="ok", seen={"ok": 1})
    with changed(folder) as truth:
        truth.hosts["pmix"] = HOST
        truth.images["image"] = ImageRecord(facts=IMAGE, said={})
        truth.cells.append(cell)
    assert load(folder).cells == [cell]
    assert texts(folder) == encoded(load(folder))
    assert [p.name for p in tmp_path.iterdir()] == ["truth"]


def texts(folder):
    return {str(p.relative_to(folder)): p.read_text() for p in folder.rglob("*") if p.is_file()}


def test_a_change_of_one_cluster_writes_the_file_of_that_cluster_alone(tmp_path):
    cells = [launched("srun").cell(argv="x", outcome="ok", seen={"ok": 1})]
    cells.append(msgspec.structs.replace(cells[0], name="other", flavour="pmix with x"))
    with changed(tmp_path) as truth:
        truth.hosts |= {"pmix": HOST, "pmix with x": HOST}
        truth.cells += cells
    files = ["clusters/pmix-with-x.json", "clusters/pmix.json", "images.json"]
    assert sorted(texts(tmp_path)) == files
    before = {name: (tmp_path / name).stat().st_ino for name in files}

    with changed(tmp_path) as truth:
        truth.cells = [msgspec.structs.replace(c, line="a" * (c.name == "other")) for c in truth.cells]
    after = {name: (tmp_path / name).stat().st_ino for name in files}
    assert [name for name in files if before[name] != after[name]] == ["clusters/pmix-with-x.json"]

    with changed(tmp_path) as truth:
        del truth.hosts["pmix with x"]
        truth.cells = [cell for cell in truth.cells if cell.flavour == "pmix"]
    assert sorted(texts(tmp_path)) == ["clusters/pmix.json", "images.json"]


def test_an_address_in_the_version_text_of_an_mpich_is_not_recorded():
    mpi = msgspec.structs.replace(
        MPI, library_string="MPICH CC: cc\nMPICH Custom Information:\thttps://h.example/p/\n"
    )
    said = {
        "mpichversion": ["MPICH CC: cc", "MPICH Custom Information: https://h.example/p/4"],
        "probe": r'{"library": "MPICH CC: cc Custom: https://h.example/p/", "comm": "begun"}',
        "library": "/opt/lib/libmpi.so.12",
    }
    record = image_record(msgspec.structs.replace(IMAGE, mpi=mpi), said)
    assert record.facts.mpi.library_string == "MPICH CC: cc\nMPICH Custom Information:\t\n"
    assert record.said == {
        "mpichversion": ["MPICH CC: cc", "MPICH Custom Information: "],
        "probe": r'{"library": "MPICH CC: cc Custom: ", "comm": "begun"}',
        "library": "/opt/lib/libmpi.so.12",
    }
    assert image_record(IMAGE, {}) == ImageRecord(facts=IMAGE, said={})


def test_cells_count_for_an_image_that_says_the_same_of_itself_and_for_no_other_of_its_name():
    one = ImageRecord(facts=msgspec.structs.replace(IMAGE, digest="sha256:1"), said={"glibc": "2.36"})
    again = ImageRecord(facts=msgspec.structs.replace(IMAGE, digest="sha256:2"), said={"glibc": "2.36"})
    other = ImageRecord(facts=msgspec.structs.replace(IMAGE, digest="sha256:1"), said={"glibc": "2.41"})
    assert same_image(one, again)
    assert not same_image(one, other)
    assert not same_image(None, one)


CENTRE = HostMpi(
    implementation="openmpi",
    version="5.0.9",
    launcher="/work/opt/openmpi/bin/mpirun",
    prefix="/work/opt/openmpi",
    library="/work/opt/openmpi/lib/libmpi.so.40",
    soname="libmpi.so.40",
    relocatable=True,
)


def test_an_mpi_of_the_centre_is_bound_and_launches_from_its_own_folder():
    host = msgspec.structs.replace(HOST, mpis=(CENTRE,))
    found = list(with_central("image", "pmix with x", host, IMAGE, "/work/opt/openmpi/bin"))
    assert {x.launch for x in found} == {"bind", "mpirun-host"}
    assert {shape(x.request) for x in found} == {"2x1", "1x2"}
    typed = next(x for x in found if (x.launch, x.variant) == ("bind", "naive"))
    assert typed.argv("apptainer").endswith(
        "--mpi=pmix apptainer exec --bind /work/opt/openmpi IMAGE "
        "env LD_LIBRARY_PATH=/work/opt/openmpi/lib /opt/probe"
    )
    assert "export PATH=/work/opt/openmpi/bin:$PATH\nexec srun " in typed.script("/x.sif", "apptainer")
    assert any("OPAL_PREFIX=/work/opt/openmpi" in x.argv() for x in found if x.variant == "planned")


def test_ranks_of_an_mpich_of_the_centre_are_offered_pmi2():
    mpich = msgspec.structs.replace(CENTRE, implementation="mpich", soname="libmpi.so.12")
    assert naive("bind", msgspec.structs.replace(HOST, mpis=(mpich,))).launcher == ("srun", "--mpi=pmi2")


def fixes(*cells, chosen=None):
    """Return for each failed launch the name of a launch that works; ``chosen`` is the engine's plan."""
    return [cell.fixed_by for cell in mended(list(cells), lambda _: chosen)]


def test_a_failure_names_the_launch_that_mends_it_and_a_success_none():
    failed = launched("mpirun-container").cell(argv="a", outcome="hang", seen={"hang": 1})
    planned = msgspec.structs.replace(failed, name="planned", variant="planned", argv="b", outcome="ok")
    other = msgspec.structs.replace(planned, name="other", flavour="bare")
    worked = msgspec.structs.replace(failed, name="worked", outcome="ok", launch="srun")

    assert fixes(failed, planned, other, worked) == ["planned", "", "", ""]
    assert fixes(failed, other) == ["", ""]


def test_a_failure_is_mended_by_the_way_that_the_engine_would_choose():
    failed = launched("mpirun-container").cell(argv="a", outcome="hang", seen={"hang": 1})
    srun = Plan(mode="srun-pmix", launcher=("srun", "--mpi=pmix"))
    way = msgspec.structs.replace(failed, name="way", launch="srun-pmix", plan=srun, outcome="ok")
    trap = msgspec.structs.replace(failed, name="trap", variant="trap", trap="--pid")
    wide = msgspec.structs.replace(way, name="wide", request=Request(nodes=8))

    assert fixes(failed, way, trap, chosen=srun) == ["way", "", ""]
    assert fixes(failed, way, chosen=None) == ["", ""]
    assert fixes(failed, wide, chosen=srun) == ["", ""]
    assert fixes(failed, msgspec.structs.replace(way, outcome="crash"), chosen=srun)[0] == ""


def test_answers_of_a_container_are_read_by_their_question():
    said = heard(
        "noise\n@ glibc\nldd 2.36\n@ libraries\nlibc.so.6 => /lib/libc.so.6 (0x7f00)\nlibm.so.6\n@ end\n"
    )
    assert said == {"glibc": "ldd 2.36", "libraries": ["libc.so.6 => /lib/libc.so.6", "libm.so.6"]}


def test_the_page_shows_what_happens_and_what_the_engine_makes_of_it():
    failed = launched("mpirun-container").cell(argv="a", outcome="hang", seen={"hang": 2, "ok": 1})
    mended = msgspec.structs.replace(failed, name="b", variant="planned", outcome="ok", seen={"ok": 1})
    trap = msgspec.structs.replace(
        failed, name="c", variant="trap", trap="--cleanenv", outcome="singletons", seen={}
    )
    text = page(Truth(hosts={"pmix": HOST}, cells=[failed, mended, trap]))
    assert "| image |  | hang (1) → **ok** |" in text
    assert "| pmix | image | mpirun-container 2x1 | `--cleanenv` | singletons |" in text
