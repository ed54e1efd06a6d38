"""Test the rules about the MPI that a rank's program loads, and about files that a mount hides."""

import msgspec

from tests.unit.engine.rules.test_loader import PROBE, loading
from tests.unit.engine.whole import HOST, IMAGE, MPI, MPICH, absent, case, image
from toolkit.engine.predict import predict
from toolkit.engine.traits import families
from toolkit.model.facts import ImageProgram
from toolkit.model.finding import LaunchFault
from toolkit.model.prediction import Request

TOOL, SOLVER = "/opt/tools/bin/tool", "/opt/app/bin/solver"
OTHER = msgspec.structs.replace(MPICH, library="/opt/mpich/lib/libmpi.so.12")
TWO = msgspec.structs.replace(
    loading(image(other_mpis=(OTHER,)), **{TOOL: MPI.library, PROBE: MPI.library, SOLVER: OTHER.library})
)
NAMED = msgspec.structs.replace(TWO, program=ImageProgram(command=(TOOL,), path=TOOL))
COPY = msgspec.structs.replace(MPI, library="/opt/copy/lib/libmpi.so.40")
ALIKE = loading(image(other_mpis=(COPY,)), **{TOOL: MPI.library, PROBE: COPY.library})
LIBRARY = "/tmp/sw/lib/libmpi.so.12"


def hiding(folder: str, **programs: str):
    return msgspec.structs.replace(loading(**programs), hidden={LIBRARY: folder})


LINE = f"{PROBE}: symbol lookup error: /opt/lib/libopen-pal.so.80: undefined symbol: pmix_framework_names"


def refused(**programs: str):
    return msgspec.structs.replace(loading(**{PROBE: MPI.library, **programs}), refused={PROBE: LINE})


SCRIPT, SETS = "/opt/app/entry.sh", {"LD_LIBRARY_PATH": "/opt/mpich/lib"}
ENTERED = image(entrypoint=(SCRIPT,), entry_script=SCRIPT, entry_sets=SETS)


def started(*chain: str):
    return msgspec.structs.replace(ENTERED, program=ImageProgram(command=chain, path=TOOL, chain=chain))


def calling(*chain: str):
    return msgspec.structs.replace(
        IMAGE, program=ImageProgram(command=chain[:1], path=chain[-1], chain=chain)
    )


MISSING = {
    "command": ("nosuch",),
    "faults": (
        LaunchFault("my.sif has no command `nosuch`", "correct the name"),
        LaunchFault("train.py:2: my.sif has no module `torch`", "add torch"),
    ),
}

FIRES = {
    "program-fails": [case(asked=MISSING), case(asked={**MISSING, "program": "torch"}, mode="torch")],
    "launcher-in-ranks": [
        case(of=calling("/opt/app/run.sh", "/usr/bin/mpirun")),
        case(of=calling("/usr/bin/mpiexec.hydra"), mode="srun-pmi2"),
    ],
    "program-joins-no-ranks": [
        case(of=absent(calling(TOOL), "mpi"), mode="srun-pmi2", program="serial"),
        case(of=absent(IMAGE, "mpi"), mode="mpirun-host", program="serial"),
    ],
    "entry-point-skipped": [case(of=ENTERED), case(of=started(TOOL))],
    "loader-refuses-program": [case(of=refused()), case(of=refused(), env={"LD_LIBRARY_PATH": "/opt/x"})],
    "programs-disagree": [case(of=TWO)],
    "mount-hides-mpi": [
        case(of=hiding("/tmp")),
        case(of=hiding("/scratch")),
        case(of=absent(hiding("/tmp"), "mpirun"), mode="mpirun-container", nodes=1, ranks_per_node=2),
    ],
}
QUIET = {
    "program-fails": [case(), case(asked={"command": ("true",)})],
    "launcher-in-ranks": [
        case(),
        case(of=calling("/opt/app/run.sh", TOOL)),
        case(of=calling("/opt/app/run.sh", "/usr/bin/mpirun"), nodes=1, ranks_per_node=1),
    ],
    "program-joins-no-ranks": [
        case(),
        case(of=absent(IMAGE, "mpi"), mode="srun-pmi2", program="serial", nodes=1),
        case(of=calling(TOOL), mode="srun-none", program="serial"),
    ],
    "entry-point-skipped": [case(), case(of=started(SCRIPT, TOOL))],
    "loader-refuses-program": [case(), case(of=refused(**{TOOL: MPI.library}))],
    "programs-disagree": [
        case(),
        case(of=NAMED),
        case(of=ALIKE),
        case(of=TWO, nodes=1),
    ],
    "mount-hides-mpi": [case(), case(of=hiding("/tmp", **{PROBE: MPI.library}))],
}
OUTCOMES = {
    "launcher-in-ranks": "unknown",
    "loader-refuses-program": "loader-failure",
    "mount-hides-mpi": "loader-failure",
    "program-fails": "crash",
    "program-joins-no-ranks": "singletons",
    "programs-disagree": "unknown",
}


def test_an_image_whose_programs_disagree_has_no_mode_that_is_called_right():
    verdict = predict(HOST, TWO, Request(nodes=2))
    assert verdict.chosen is None
    assert {verdict.of(mode).outcome for mode in ("srun-pmix", "srun-pmi2", "srun-none")} == {"unknown"}
    assert f"{SOLVER} loads MPICH" in verdict.of("srun-pmix").because
    assert predict(HOST, NAMED, Request(nodes=2)).chosen == "srun-pmix"


def test_the_fix_of_a_skipped_entry_point_starts_the_command_by_it():
    found = predict(HOST, started(TOOL), Request(nodes=2)).findings
    fix = next(finding.fix for finding in found if finding.id == "entry-point-skipped")
    assert fix.endswith(f"toolkit launch --image IMAGE -- {SCRIPT} {TOOL}`")


def test_a_family_names_its_programs_and_copies_of_one_release_are_one_family():
    assert [(mpi.implementation, users) for mpi, users in families(TWO)] == [
        ("openmpi", (PROBE, TOOL)),
        ("mpich", (SOLVER,)),
    ]
    assert families(ALIKE) == families(NAMED) == families(IMAGE) == ()


def test_a_launcher_that_a_mount_hides_is_unavailable():
    of = absent(hiding("/tmp"), "mpirun")
    verdict = predict(HOST, of, Request(nodes=1, ranks_per_node=2))
    assert verdict.of("mpirun-container").outcome == "unavailable"
    assert verdict.of("srun-pmix").outcome == "loader-failure"


def test_a_command_with_a_fault_works_in_no_mode_and_the_fault_is_the_reason():
    verdict = predict(HOST, IMAGE, Request(nodes=2, **MISSING))
    assert verdict.chosen is None
    assert {p.outcome for p in verdict.predictions if p.outcome != "unavailable"} == {"crash"}
    found = next(finding for finding in verdict.findings if finding.id == "program-fails")
    assert (found.title, found.fix) == ("my.sif has no command `nosuch`", "correct the name")
    assert found.evidence == (
        "command: nosuch",
        "also: train.py:2: my.sif has no module `torch`; add torch",
    )
