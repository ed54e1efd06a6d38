"""Test that each signature of a fault finds its own sample of job output, and no other sample."""

import json
import random
import re
import sys
import time
from pathlib import Path

from tests.measured import measured
from tests.unit.tables import every_row
from tests.unit.thorough import count
from toolkit import knowledge
from toolkit.engine.logs import joblines, logsearch, signature_match
from toolkit.engine.logs.joblines import Output
from toolkit.engine.logs.logwords import required_words
from toolkit.engine.logs.signature_match import explain, recognise
from toolkit.engine.registry import RULES

HERE = Path(__file__).parents[1]
CELLS = HERE.parents[1] / "matrix" / "cells.jsonl"
SIGNATURES = knowledge.signatures()
BY_ID = every_row("signature", SIGNATURES, ids=lambda s: s.id)


@BY_ID
def test_a_signature_is_what_its_sample_means_before_all_others(signature):
    found = explain(f"something before\n{signature.sample}\nsomething after\n")
    assert found[0].title == signature.title
    assert [f.title for f in found] == [signature.title]


LABELS = ["{}: ", "[rank{}]: ", "[default{}]:", "[1,{}]<stderr>:", "[{}]<stdout>:"]


@BY_ID
@every_row("label", LABELS, ids=["srun", "torch", "torchrun", "mpirun", "horovodrun"])
def test_the_sample_is_recognised_in_the_output_of_a_labelled_rank(signature, label):
    own, other = label.format(1), label.format(0)
    mixed = "".join(f"{own}{line}\n{other}epoch 1\n" for line in signature.sample.strip().splitlines())
    told = explain(mixed)
    assert [f.title for f in told] == [signature.title]
    assert told[0].evidence[0].startswith(f"line 1: {own}")


@BY_ID
def test_a_signature_is_tied_to_a_rule_or_to_none_and_says_all(signature):
    assert signature.finding in {"", *(rule.id for rule in RULES)}
    assert all(re.compile(p) for p in (signature.pattern, *signature.then))
    assert signature.title
    assert signature.fix
    assert signature.source
    assert len(signature.title) <= 160


@BY_ID
def test_a_title_is_one_short_sentence_and_a_fix_has_sentences(signature):
    assert len(signature.title.split()) <= 20
    assert not signature.title.endswith(".")
    for step in signature.fix:
        assert re.fullmatch(r"[A-Z].*\.", step), step
        assert len(re.sub(r"`[^`]*`", "x", step).split()) <= 25, step
    # `report.explained` splits a fix with a single step at semicolons, so only code may contain one.
    assert len(signature.fix) > 1 or ";" not in re.sub(r"`[^`]*`", "x", signature.fix[0])


@BY_ID
@every_row(
    "hostile",
    ["a" * 2000, "/" * 2000, "0" * 2000, " " * 2000, "at " * 660, "libmpi.so " * 200, "error: " * 280],
    ids=["letters", "slashes", "digits", "spaces", "words", "libraries", "errors"],
)
def test_no_pattern_takes_long_on_a_hostile_line(signature, hostile):
    begun = time.process_time()
    for pattern in (signature.pattern, *signature.then):
        re.search(pattern, hostile)
        re.search(pattern, signature.sample.splitlines()[0][:40] + hostile)
    assert time.process_time() - begun < 0.5


def test_there_are_many_signatures_of_every_kind_and_their_ids_are_unique():
    assert len({s.id for s in SIGNATURES}) == len(SIGNATURES) >= 70
    text = " ".join(f"{s.pattern} {s.source}" for s in SIGNATURES)
    kinds = ("MPI", "PMIX", "slurm", "apptainer", "CUDA", "NCCL", "orovod", "ensorflow", "glibc", "Python")
    assert all(kind in text for kind in kinds)


@every_row("file", sorted((HERE / "healthy").glob("*.txt")), ids=lambda f: f.stem)
def test_nothing_is_recognised_in_output_that_means_no_harm(file):
    assert explain(file.read_text("utf-8")) == ()


HARMLESS = """\
Epoch 1/3\r 1/10 [==>......] - loss: 2.3
preflight: MPI reports a world of 2, as many as tasks
accuracy 0.97
"""


def test_progress_bars_are_no_errors():
    assert explain(HARMLESS) == ()


FAILED = [c for c in map(json.loads, CELLS.read_text("utf-8").splitlines()) if c.get("message")]


def test_every_message_of_the_measured_cells_is_recognised():
    unknown = {c["message"] for c in FAILED if not explain(c["message"])}
    assert unknown == set()


def test_cells_that_failed_in_one_way_are_not_told_to_have_failed_in_another():
    """Check that some findings occur only for the recorded outcome that they cause.

    For example, toolkit finds ``missing-library`` only in messages of launches with ``loader-failure``.
    """
    confusion: dict[str, dict[str, int]] = {}
    for cell in FAILED:
        for finding in explain(cell["message"]):
            row = confusion.setdefault(finding.id, {})
            row[cell["outcome"]] = row.get(cell["outcome"], 0) + 1
    # A missing library stops a program before its start, whatever other faults there are.
    assert set(confusion["newer-glibc-needed"]) == {"loader-failure"}
    assert set(confusion["missing-library"]) == {"loader-failure"}
    assert set(confusion["mixed-mpi-libraries"]) == {"loader-failure"}
    # If the MPI does not support the launch interface, ranks are singletons or fail immediately, but do not
    # lose messages.
    for refused in ("image-lacks-pmi2", "image-lacks-pmix"):
        assert set(confusion[refused]) <= {"init-failure", "singletons"}
    assert set(confusion["shared-memory-full"]) == {"crash"}


@every_row("library", ["libcudart.so.11.0", "libcuda.so.1", "libnvinfer.so.7", "libcudnn.so.8"])
def test_a_library_of_cuda_that_is_not_there_is_no_error(library):
    line = f"dlerror: {library}: cannot open shared object file: No such file or directory"
    (finding,) = explain(line)
    assert (finding.id, finding.severity) == ("missing-gpu-library", "info")


def glibc(needer):
    (finding,) = explain(f"x: /lib/libc.so.6: version `GLIBC_2.34' not found{needer}")
    return finding.id


def test_whoever_requires_a_newer_c_library_tells_whether_it_was_bound_or_built_elsewhere():
    assert glibc(" (required by /host/lib/libpmix.so.2)") == "newer-glibc-needed"
    for own in ("./train", "/home/ada/train", "./lib/libmine.so", "/venv/site-packages/a/b.so"):
        assert glibc(f" (required by {own})") == "built-on-newer-system"
    assert glibc("") == "built-on-newer-system"
    assert glibc(" (required by /.singularity.d/libs/libcuda.so.1)") == "gpu-libraries-need-newer-glibc"


GONE = "failed to retrieve path for /home/u/my.sif: lstat /home/u/my.sif: no such file or directory"


@every_row(
    "line",
    [
        f"FATAL:   could not open image /home/u/my.sif: {GONE}",
        f"FATAL: could not open image /home/u/my.sif: {GONE}",
        f"FATAL:   While checking container encryption: could not open image /home/u/my.sif: {GONE}",
        f"\x1b[31mFATAL:  \x1b[0m While checking container encryption: could not open image /my.sif: {GONE}",
    ],
)
def test_an_image_that_is_not_there_is_recognised_however_apptainer_says_it(line):
    (finding,) = explain(line)
    assert finding.id == "image-not-opened"
    assert "\x1b" not in finding.evidence[0]


def test_an_image_of_another_architecture_is_not_called_unreadable():
    why = "the image's architecture (arm64) could not run on the host's (amd64)"
    (finding,) = explain(f"FATAL:   While checking container encryption: could not open image /a.sif: {why}")
    assert finding.id == "architecture-differs"


@every_row(
    ("line", "id_"),
    [
        ("E 12 alloc.cc:3] cuMemAlloc failed: CUDA_ERROR_OUT_OF_MEMORY: out of memory", "gpu-memory-full"),
        ("numpy: cannot allocate the table: out of memory", "out-of-memory"),
        ("[n1:7] Read -1, expected 4096, errno = 14", "single-copy-gpu"),
        ("[n1:7] Read -1, expected 4096, errno = 1", "namespaces-split-a-node"),
    ],
)
def test_a_line_about_a_gpu_has_another_cause_than_a_line_about_the_host(line, id_):
    assert [f.id for f in explain(line)] == [id_]


@every_row(
    ("line", "id_"),
    [
        ("bash: mpirun: command not found", "mpirun-not-found"),
        ("/var/spool/job/slurm_script: line 16: mpiexec.hydra: command not found", "mpirun-not-found"),
        ("sh: 1: mpirun: not found", "mpirun-not-found"),
        ("slurmstepd: error: execve(): mpirun: No such file or directory", "mpirun-not-found"),
        ("srun: error: node1: execve(): /opt/bin/mpirun: No such file or directory", "mpirun-not-found"),
        ("slurmstepd: error: execve(): date: No such file or directory", "command-path"),
        ("slurmstepd: error: execve(): singularity: No such file or directory", "runtime-absent"),
        ("slurm_script: line 4: mkdir: command not found", "command-path"),
        (
            "docker: toomanyrequests: You have reached your unauthenticated pull rate limit.",
            "image-pull-limit",
        ),
        ("torch.distributed.elastic.rendezvous.api.RendezvousClosedError", "torch-rendezvous-incomplete"),
        ("RuntimeError: received 3 items of ancdata", "too-many-files"),
        (
            "n1.net: Unable to create recv CQ of size 8 on mlx5_1: Cannot allocate memory",
            "locked-memory-limited",
        ),
        ("RuntimeError: cuDNN error: CUDNN_STATUS_EXECUTION_FAILED", "cudnn-call"),
        ("MPID_Init(638): PMI2 init failed: 1", "image-lacks-pmix"),
        ("ImportError: numpy.core.multiarray failed to import", "numpy-differs"),
    ],
)
def test_a_line_has_the_cause_that_is_true_for_it(line, id_):
    assert [f.id for f in explain(line)] == [id_]


def test_lines_are_numbered_as_an_editor_does_however_many_there_are():
    sign = "[n] OPAL ERROR: Unreachable in file pmix3x_client.c"
    (finding,) = explain("x\u2028y\x0cz\n" * 250_000 + f"50%\r{sign}\n")
    assert finding.evidence == (f"line 250001: {sign}",)
    (finding,) = explain("a\nb", f"b\n{sign}\n", missing_lines=100)
    assert finding.evidence == (f"line 103: {sign}",)


def test_the_evidence_names_the_lines():
    (finding,) = explain("hello\n[m2:00527] OPAL ERROR: Unreachable in file ext3x_client.c at line 112\n")
    assert finding.evidence == (
        "line 2: [m2:00527] OPAL ERROR: Unreachable in file ext3x_client.c at line 112",
    )


def test_a_cause_stands_before_its_consequence():
    consequence = "srun: error: node2: task 1: Exited with exit code 1"
    text = f"{consequence}\n[n] OPAL ERROR: Unreachable in file pmix3x_client.c\n"
    assert [f.severity for f in explain(text)] == ["error", "info"]


def test_what_only_says_that_something_failed_is_left_out_where_the_cause_is_known():
    general = "It looks like MPI_INIT failed for some reason; your parallel process is"
    cause = "[n1:12] PMIX ERROR: NOT-FOUND in file gds_ds12_base.c at line 2150"
    assert [f.id for f in explain(general)] == ["open-mpi-init-failed"]
    assert [f.id for f in explain(f"{general}\n{cause}\n")] == ["tmp-hidden"]


def test_a_message_of_several_lines_needs_all_of_them_and_of_one_rank():
    head, tail = "It looks like MPI_INIT failed for some reason; your", "  PML add procs failed"
    assert [f.id for f in explain(f"0: {head}\n1: epoch\n0: {tail}\n")] == ["pml-differs"]
    assert [f.id for f in explain(f"0: {head}\n1: {tail}\n")] == ["open-mpi-init-failed"]
    assert [f.id for f in explain(f"{head}\n" + "x\n" * 60 + tail)] == ["open-mpi-init-failed"]


UNPACK = "[node1:14068] PMIX ERROR: PMIX_ERR_UNPACK_READ_PAST_END_OF_BUFFER in file unpack.c at line 276"
MET = (
    "preflight: 2 ranks on 2 nodes, Open MPI 4.1.4; messages arrive, 2.2 Gbit/s from node to node (1.92 s)",
    "mnist: horovod, 2 ranks on 2 nodes, batch 32 each",
)


@every_row("met", MET)
def test_what_the_ranks_came_through_is_no_cause(met):
    missing = "ModuleNotFoundError: No module named 'foo'"
    assert [f.id for f in explain(f"{UNPACK}\n{met}\n{missing}")] == ["python-module-missing"]
    # Here, the PMIx error comes after the line of working ranks, so no later line shows that they survived
    # the error.
    (first, _) = explain(f"{met}\n{UNPACK}\n{missing}")
    assert first.evidence == (f"line 2: {UNPACK}",)


def test_nothing_is_said_of_output_that_is_not_known():
    assert explain("epoch 1: accuracy 0.97\n") == ()


def test_a_long_line_and_much_output_do_no_harm():
    assert explain("x" * 5_000_000 + "\n" + "y\n" * 10_000) == ()


def test_a_number_in_a_line_decides_where_a_pattern_names_it():
    """If lines differ only in numbers, explain searches one of them. Patterns that contain numbers search
    every line.
    """
    epochs = "".join(f"0: epoch {n}\n" for n in range(100, 200))
    last = "slurm_script: line 28:  8156 Killed                  python3 train.py"
    assert [f.id for f in explain(f"{epochs}rank 1: exited on signal 9\n")] == ["killed"]
    assert explain(f"{epochs}rank 1: exited on signal 0\nrank 1: exited on signal 8\n") == ()
    assert explain(f"{epochs}{last}\n{last.replace('28', '29')}")[0].evidence == (
        f"line 101: {last}",
        f"line 102: {last.replace('28', '29')}",
    )


@every_row("signature", [s for s in SIGNATURES if not s.then], ids=lambda s: s.id)
def test_lines_that_look_alike_do_not_hide_the_one_that_tells(signature):
    """explain also finds a line among lines that differ from it only in numbers."""
    numbers = str.maketrans("123456789", "234567891")
    others = [signature.sample.translate(numbers), signature.sample.translate(numbers).translate(numbers)]
    assert signature.title in [f.title for f in explain("\n".join([*others, signature.sample]))]


def test_much_output_is_read_in_seconds():
    lines = (f"{n % 4}: epoch {n}/900000  loss 0.1364  accuracy 0.9586  {n} images/s" for n in range(100_000))
    begun = time.process_time()
    assert explain("\n".join(lines)) == ()
    # explain needs half a second for this log, because it skips eight of ten patterns for similar lines.
    assert time.process_time() - begun < 5


def test_a_bus_error_of_ranks_that_slurm_ends_is_no_full_shared_memory():
    """When Slurm ends a step, a rank may get a bus error, because its container loses its file system."""
    ended, bus = "srun: Terminating StepId=157.0", "srun: error: node2: task 1: Bus error"
    assert "shared-memory-full" in {f.id for f in explain(f"{bus}\n{ended}\n")}
    assert "shared-memory-full" not in {f.id for f in explain(f"{ended}\n{bus}\n")}


@every_row("name", ["hwloc_", "mca_btl_tcp_endpoint", "ibv_", "/dev/shm"])
def test_lines_in_which_one_name_stands_again_and_again_are_read_in_time(name):
    lines = ["".join("abcdefghij"[int(digit)] for digit in str(n)) + name * 400 for n in range(100)]
    begun = time.process_time()
    assert explain("\n".join(line[:2000] for line in lines)) == ()
    assert time.process_time() - begun < 1


@BY_ID
def test_every_pattern_has_a_word_that_is_looked_for_before_it(signature):
    compiled = re.compile(signature.pattern, re.MULTILINE)
    assert required_words(signature.pattern)
    line = next(line for line in signature.sample.splitlines() if compiled.search(line))
    shape = re.sub(r"\d", "0", line).lower().encode()
    assert all(any(one.text in shape for one in group) for group in required_words(signature.pattern))


def test_what_there_is_no_time_for_is_said(monkeypatch):
    monkeypatch.setattr(signature_match, "_SECONDS", -1.0)
    assert recognise(Output("a\nSIGSEGV\n")).unread == (1, 3)
    monkeypatch.undo()
    assert recognise(Output("a\nSIGSEGV\n")).unread is None


def test_the_middle_is_what_is_not_read(monkeypatch):
    ticks = iter(range(1000))
    monkeypatch.setattr(logsearch.time, "monotonic", lambda: next(ticks))
    monkeypatch.setattr(joblines, "_PAGE", 10)
    text = "".join(f"SIGSEGV {n:02}\n" for n in range(20))  # each line is one page
    output = Output(text)
    found = logsearch.search(output, ("SIGSEGV",), 6)
    assert [output.line(p).number for p in found.positions["SIGSEGV"]] == [1, 2, 3, 18, 19, 20]
    assert found.unread == (4, 18)


def test_the_gap_between_beginning_and_end_is_said():
    assert recognise(Output("a\nb", "b\nc", missing_lines=7)).unread == (2, 9)


@every_row("kind", ["distinct", "random", "one line"])
def test_a_large_output_takes_less_than_ten_seconds_and_300_mb(tmp_path, kind):
    file, chance = tmp_path / "job.out", random.Random(3)
    pieces = []
    for _ in range(count(2, 4)):
        piece = chance.randbytes(1 << 20)
        if kind == "distinct":
            numbers = memoryview(piece).cast("I")[: 1 << 16]
            piece = "".join(f"{n:x} {SIGNATURES[n % 300].sample.split()[-1]}\n" for n in numbers).encode()
        pieces.append(piece.replace(b"\n", b"x").replace(b"\r", b"x") if kind == "one line" else piece)
    with file.open("wb") as out:
        while out.tell() < count(2, 64) << 20:
            out.write(pieces[out.tell() % len(pieces)])
    took = measured([sys.executable, "-m", "toolkit", "explain", str(file)], most=1 << 30)
    assert took.code in {0, 1}
    assert took.cpu < 10
    assert took.peak < 300 << 20
