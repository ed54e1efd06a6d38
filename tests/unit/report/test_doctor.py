"""Test the output of ``toolkit doctor`` for terminals of several widths."""

import re

from tests.matrix.record import load
from tests.unit.engine.examples import HOST, IMAGE, with_
from tests.unit.tables import every_row
from toolkit.engine.predict import judge_host, predict
from toolkit.model.facts import HostFacts, ImageFacts
from toolkit.model.finding import Finding
from toolkit.model.prediction import Prediction, Request, Verdict
from toolkit.report.doctor.answer import answer
from toolkit.report.doctor.findings import findings
from toolkit.report.doctor.page import host_page, page
from toolkit.report.lines import leave_unstyled

COMMAND = "toolkit launch --image 'my image.sif' --nodes 2 --host LOGIN_NODE -- COMMAND"


def shown(
    width: int, host: HostFacts = HOST, image: ImageFacts = IMAGE, *, everything: bool = True, **shape
) -> str:
    request = Request(**shape)
    verdict = predict(host, image, request)
    said = {"next_command": COMMAND, "advice": "Do it.", "full": everything}
    return page(host, image, verdict, request, **said, width=width)


def words(text: str) -> set[str]:
    return {word for word in re.split(r"[\s,;()]+", text) if word}


@every_row("width", [30, 40, 50, 60, 72, 80, 100])
def test_lines_fit_but_for_words_that_do_not(width):
    truth = load()
    for name in ("app-mpich-4.3.1", "venv-impi-2021.6.0", "source-openmpi-4.1.4-plugins"):
        text = "\n".join(
            shown(width, truth.hosts["pmix"], truth.images[name].facts, everything=all_)
            for all_ in (True, False)
        )
        wide = [line for line in text.splitlines() if len(line) > width]
        longest = [max(line.split(), key=len) for line in wide]
        # A line may exceed the width only if it has a single long word after its label.
        assert all(len(word) + 20 > width - 20 for word in longest), wide
        assert all(len(line.split()) <= 3 for line in wide), wide


def test_a_narrow_page_says_the_same_as_a_wide_one():
    both = words(shown(100)) - {"HOST", "IMAGE"}
    assert words(shown(40)) >= {word for word in both if "/" not in word and not word.startswith("-")}


def test_in_a_narrow_terminal_the_image_stands_below_the_host():
    lines = shown(40).splitlines()
    at = lines.index("  C library")
    assert lines[at + 1 : at + 3] == ["    host   glibc 2.41", "    image  glibc 2.36"]
    assert "    host   glibc 2.41" in host_page(HOST, (), width=40).splitlines()


def test_the_first_line_answers_and_has_the_command():
    first = shown(200, everything=False).splitlines()[0]
    assert first == f"Yes: srun-pmix. {COMMAND}"
    narrow = shown(60, everything=False).splitlines()
    assert narrow[0].startswith("Yes: srun-pmix. toolkit launch --image 'my image.sif'")
    assert narrow[0].endswith(" \\")
    assert narrow[1].startswith("  --")


def test_a_mode_that_the_user_asked_for_is_answered():
    first = shown(100, everything=False, mode="srun-pmi2").splitlines()[0]
    assert first == "No: toolkit predicts 'init-failure' for mode srun-pmi2."
    bare = with_(HOST, slurm=None, absent={"slurm": "no"})
    first = shown(100, bare, everything=False, mode="srun-pmi2").splitlines()[0]
    assert first == "No: srun-pmi2 cannot start: Slurm is not installed on this machine."


@every_row(
    ("chosen", "outcomes", "asked", "word"),
    [
        ("srun-pmix", {"srun-pmix": "ok"}, None, "Yes"),
        ("srun-pmix", {"srun-pmix": "ok?"}, None, "Perhaps"),
        (None, {"srun-pmix": "crash", "srun-none": "unknown"}, None, "Unknown"),
        (None, {"srun-pmix": "crash", "srun-none": "singletons"}, None, "No"),
        (None, {"srun-pmix": "crash", "gloo": "ok"}, None, "No"),
        (None, {"srun-pmix": "unknown", "srun-none": "ok"}, "srun-pmix", "Unknown"),
        (None, {"srun-pmix": "hang", "srun-none": "unknown"}, "srun-pmix", "No"),
    ],
)
def test_the_word_of_the_answer(chosen, outcomes, asked, word):
    predictions = tuple(
        Prediction(
            mode=mode,
            outcome=outcome.removesuffix("?"),
            because="x",
            basis="beyond" if outcome.endswith("?") else "derived",
        )
        for mode, outcome in outcomes.items()
    )
    assert answer(Verdict(predictions=predictions, findings=(), chosen=chosen), asked).word == word


def test_error_is_said_only_of_what_stops_this_launch():
    assert " error " not in shown(80)
    assert " error " not in shown(80, everything=False)
    assert " error " in shown(80, everything=False, mode="srun-pmi2")


def test_the_fix_of_the_fault_is_said_once():
    truth = load()
    host, image = truth.hosts["pmix"], truth.images["venv-impi-2021.6.0"].facts
    verdict = predict(host, image, Request())
    fix = next(f.fix for f in verdict.findings if f.id == "libfabric-missing")
    advice = f"{fix[0].upper()}{fix[1:]}."
    text = page(host, image, verdict, Request(), next_command="x", advice=advice)
    assert " ".join(text.split()).count(fix[1:]) == 1
    assert text.startswith("No: The MPI in the image does not find libfabric")


def test_a_host_alone_is_answered():
    assert host_page(HOST, (), "toolkit doctor IMAGE").splitlines()[0].startswith("Yes: ")
    (found,) = [
        f for f in judge_host(with_(HOST, runtime=None, absent={"runtime": "no"})) if f.severity == "error"
    ]
    text = host_page(HOST, (found,))
    assert text.startswith(f"No: {found.title}.")
    assert "toolkit doctor" not in text


def test_a_path_in_the_table_is_never_broken():
    launcher = with_(HOST.mpis[0], launcher="/opt/centre/software/openmpi/bin/mpirun")
    lines = shown(80, with_(HOST, mpis=(launcher,))).splitlines()
    at = lines.index("  MPI        host: Open MPI 5.0.7, /opt/centre/software/openmpi/bin/mpirun")
    assert lines[at + 1] == "             image: Open MPI 4.1.4"


def test_ids_of_rules_and_modes_are_never_broken():
    narrow = words(shown(40))
    found = predict(HOST, IMAGE, Request()).findings
    assert narrow >= {f.id for f in found} | {mode for f in found for mode in f.modes}


@every_row(
    ("facts", "told"),
    [
        ({"amd_gpus": ("gfx90a",) * 8}, "8 \N{MULTIPLICATION SIGN} AMD gfx90a"),
        (
            {"gpu_driver": "550.54.15", "gpus": ("Tesla T4",) * 2},
            "NVIDIA driver 550.54.15, 2 \N{MULTIPLICATION SIGN} Tesla T4",
        ),
        (
            {"gpu_driver": "550.54.15", "amd_gpus": ("gfx1151",)},
            "NVIDIA driver 550.54.15, 1 \N{MULTIPLICATION SIGN} AMD gfx1151",
        ),
    ],
)
def test_gpus_are_told_by_their_maker(facts, told):
    host = HostFacts(place="here", absent={"gpu_driver": "no NVIDIA driver"}, **facts)
    assert told in " ".join(host_page(host, (), width=200).split())


def test_runtimes_have_the_names_that_their_makers_write():
    ce = with_(HOST, runtime=with_(HOST.runtime, name="singularity-ce", version="4.1.0"))
    assert "SingularityCE 4.1.0" in shown(100, ce)


def test_facts_that_were_written_by_hand_are_cited_by_their_value():
    host = HostFacts(
        place="x", kernel_mounts=(), mpis=HOST.mpis, user_namespaces=False, unknown={"glibc": "no"}
    )
    assert [host.cite(name) for name in ("kernel_mounts", "user_namespaces")] == [
        "kernel_mounts: none",
        "user_namespaces: false",
    ]
    first = HOST.mpis[0]
    assert host.cite("mpis") == f"mpis: {first.implementation} {first.version}"
    assert host.cite("mpis.version") == f"mpis.version: {first.version}"
    assert [host.cite(name) for name in ("glibc", "pmix")] == [
        "glibc: not known, no",
        "pmix: not known, the probe did not read this fact",
    ]


def test_several_ways_to_fix_a_fault_are_a_numbered_list():
    fix = (
        "use mode srun-pmix; or, without GPUs, leave out `--nv`; or ask the administrators to install "
        "Slurm's plugin"
    )
    one = Finding(id="f", severity="error", title="Fault", evidence=(), fix=fix, source="s")
    lines = list(findings((one,), leave_unstyled, 60))
    assert lines[2:6] == [
        "           fix: 1. Use mode srun-pmix.",
        "                2. Without GPUs, leave out `--nv`.",
        "                3. Ask the administrators to install Slurm's",
        "                   plugin.",
    ]
