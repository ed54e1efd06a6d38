"""Test labels at the start of lines, faults that an error quotes, and the last lines before an abort."""

from tests.unit.engine.logs.test_root import told
from tests.unit.tables import every_row
from toolkit.engine.logs.joblines import Output
from toolkit.engine.logs.line_class import classify
from toolkit.engine.logs.topics import class_of_exception, class_of_files, class_of_text

HEADS = [
    "Traceback (most recent call last):",
    '  File "/home/ada/train.py", line 3, in <module>',
    "    run()",
]


def written_by(label: str, end: str) -> str:
    return "".join(f"{label}{line}\n" for line in [*HEADS, end])


@every_row(
    "label",
    [
        "node7: ",
        "[node7:3]:",
        "#12 41.07 ",
        "stderr: ",
        "Nov 13 10:34:57 node7 python[1063]: ",
        "(Trainer pid=71) ",
    ],
)
def test_a_traceback_is_read_behind_the_label_of_each_line(label):
    root, class_, _ = told(written_by(label, "KeyError: 'lr'"))
    assert (root.endswith("KeyError: 'lr'"), class_) == (True, "python-exception")


@every_row(
    "label",
    [
        "2026-01-02T10:00:00.5Z n3 | [rank5]: ",
        "n3: [rank5]: ",
        "(Trainer pid=71) [rank5]: ",
        "[88] [rank5]: ",
    ],
)
def test_a_tag_of_pytorch_behind_another_label_names_the_rank(label):
    root, class_, rank = told(written_by(label, "KeyError: 'lr'"))
    assert (root.endswith("KeyError: 'lr'"), class_, rank) == (True, "python-exception", "5")


def test_a_tag_of_pytorch_behind_a_progress_bar_names_the_rank():
    text = written_by("[rank5]: ", "KeyError: 'lr'")
    assert told(f" 31%|\u2588\u258f  | 31/99 [01:02<2:10,  1.2s/it]{text}")[::2] == (
        "[rank5]: KeyError: 'lr'",
        "5",
    )


@every_row("text", ["the job lost '[rank5]: ' in its table", 'print("x [rank5]: y")'])
def test_a_quoted_tag_is_no_tag(text):
    assert Output(f"{text}\n").line(0).task == ""


def test_tracebacks_of_two_labels_on_alternate_lines_are_read_apart():
    first, second = written_by("node1: ", "KeyError: 'lr'"), written_by("node2: ", "MemoryError")
    pairs = zip(first.splitlines(), second.splitlines(), strict=True)
    assert told("".join(f"{one}\n{other}\n" for one, other in pairs))[:2] == (
        "node1: KeyError: 'lr'",
        "python-exception",
    )


def test_a_logger_before_a_traceback_without_labels_is_no_label():
    text = "2024-01-02 ERROR app: " + "\n".join([*HEADS, "KeyError: 'lr'"]) + "\n"
    assert told(text)[:2] == ("KeyError: 'lr'", "python-exception")


@every_row(
    ("line", "class_"),
    [
        (
            "FATAL   [U=5,P=7]   Master()   container creation failed: mount /x: invalid argument",
            "container-runtime",
        ),
        ("#9 12.3 E: Unable to locate package libfoo", "build"),
        ("[2024-05-01T10:00:00.123] [88.0] error: switch plugin is odd", "scheduler-start"),
        ("[2024-05-01T10:00:00.123] error: execve(): ./solver: No such file or directory", "program-start"),
        ("> RuntimeError: CUDA error: unknown error", "cuda-or-hip"),
        (
            '{"log":"RuntimeError: CUDA error: unknown error\\n","stream":"stderr"}',
            "cuda-or-hip",
        ),
    ],
)
def test_the_words_behind_a_label_tell_the_class(line, class_):
    assert told(f"{line}\n")[1] == class_


@every_row(
    ("error", "quoted", "class_"),
    [
        ("SubmitError: the job was not submitted", "sbatch: error: Invalid wckey", "scheduler-refusal"),
        ("BuildFailed: see below", "g++: fatal error: no input files, compiler stopped", "build"),
    ],
)
def test_the_fault_that_an_error_quotes_is_the_root_line(error, quoted, class_):
    text = "\n".join([*HEADS, error, "Output:", "some words", quoted]) + "\n"
    assert told(text)[:2] == (quoted, class_)


@every_row(
    ("quoted", "class_"),
    [
        ("Cuda failure 'out of memory'", "out-of-memory"),
        ("Net : Call to recv from node7<4711> failed", "nccl-or-rccl"),
    ],
)
def test_the_fault_of_nccl_that_pytorch_quotes_is_the_root_line(quoted, class_):
    lines = [
        "torch.distributed.DistBackendError: NCCL error in: x.cpp:1, unhandled cuda error",
        "Last error:",
    ]
    text = "\n".join([*HEADS, *lines, quoted]) + "\n"
    assert told(text)[:2] == (quoted, class_)


def test_a_warning_before_the_end_of_a_rank_is_the_root_line_if_no_line_reports_an_error():
    warning = "[W agent.cpp:9] request 0 failed: Connection reset by peer"
    text = f"step 1\n{warning}\nsrun: error: node1: task 1: Exited with exit code 1\n"
    assert told(text)[:2] == (warning, "rendezvous")


def test_an_error_that_quotes_nothing_stays_the_root_line():
    text = "\n".join([*HEADS, "KeyError: 'lr'", "NCCL WARN Call to connect failed"]) + "\n"
    assert told(text)[0] == "KeyError: 'lr'"


@every_row(
    "said",
    ["E 12:00 solver.cc:3] negative volume", "mylib FATAL no convergence", "<critical> table is empty"],
)
def test_what_a_process_says_before_it_aborts_is_the_root_line(said):
    assert told(f"step 1\n{said}\nAborted (core dumped)\n")[0] == said


def test_a_stack_trace_before_an_abort_is_no_root_line():
    frames = "E 12:00 log.cc:3]  @  0x7f6d660d  raise\nF 12:00 log.cc:3] *** SIGABRT received at time=1"
    assert told(f"{frames}\nFatal Python error: Aborted\n")[:2] == ("Fatal Python error: Aborted", "signal")


@every_row(
    ("message", "class_"),
    [
        ("RESOURCE_EXHAUSTED: GPU 3 has no free streams", None),
        ("INTERNAL: NCCL communicator is damaged", "nccl-or-rccl"),
        ("INTERNAL: RET_CHECK failure (xla/compiler/service/verifier.cc:23) size() == 2", None),
    ],
)
def test_the_first_word_after_a_status_code_names_the_class(message, class_):
    assert class_of_exception(f"jaxlib.XlaRuntimeError: {message}") == class_


@every_row(
    ("text", "class_"),
    [
        ("odd state (third_party/compiler/xla/verifier.cc:2330)", None),
        ("the compiler ended", "build"),
        ("odd state in nccl_utils/nccl.cc:5", "nccl-or-rccl"),
    ],
)
def test_the_folders_of_a_source_file_name_no_class(text, class_):
    assert class_of_text(text) == class_


def test_progress_before_an_abort_is_no_root_line():
    assert told("loading\nstep 1 loss 0.3\nAborted (core dumped)\n")[0] == "Aborted (core dumped)"


@every_row("reason", ["core:core:cma_copy():58<warn> CMA error 14", "cxi:ep:cxip_x():3<warn> send failed: 5"])
def test_the_error_of_libfabric_before_an_error_of_mpi_is_the_root_line(reason):
    after = "[n1:71] *** An error occurred in MPI_Put\n[n1:71] *** MPI_ERR_OTHER: known\n"
    line = f"libfabric:71:17::{reason}"
    assert told(f"{line}\n{after}")[:2] == (line, "ucx-or-libfabric")


def test_the_demand_of_a_program_without_labels_is_the_root_line_of_its_exit():
    text = "This test requires exactly two processes\nsrun: error: node1: task 1: Exited with exit code 1\n"
    assert told(text)[0] == "This test requires exactly two processes"


@every_row(
    "word",
    [
        "default value",
        "truncation",
        "struct_name",
        "refactored table",
        "singleton array",
        "prefab",
        "unreachable code",
    ],
)
def test_a_word_that_contains_the_name_of_a_library_names_no_class(word):
    row = classify(f"ValueError: the {word} failed with an error")
    assert row is not None
    assert row.class_ == "python-exception"


@every_row(
    ("line", "class_"),
    [
        ("could not read the rpm: squashfs image is odd", "container-runtime"),
        ("psm3 endpoint is gone", "ucx-or-libfabric"),
        ("no thing is here", None),
    ],
)
def test_the_subject_of_a_line_names_its_class(line, class_):
    assert class_of_text(line) == class_


@every_row(
    ("files", "class_"),
    [
        (
            ("/home/ada/train.py", "/venv/lib/python3.12/site-packages/urllib3/connection.py"),
            "network-or-dns",
        ),
        (("/venv/lib/python3.12/site-packages/requests/api.py", "/a.py", "/b.py", "/c.py"), None),
        (("/usr/lib/python3.12/argparse.py",), "user-configuration"),
    ],
)
def test_the_innermost_files_of_a_traceback_name_its_class(files, class_):
    assert class_of_files(files) == class_
