"""Test the root line of a failed job, the fault's class, the rank that failed first, and whether to retry."""

from pathlib import Path

import pytest

from tests.unit.tables import every_row
from toolkit.engine.logs.clues import classify
from toolkit.engine.logs.codes import error_codes
from toolkit.engine.logs.explanation import explain_output
from toolkit.engine.logs.joblines import Output
from toolkit.knowledge.signatures import classes, fault_lines

HERE = Path(__file__).parents[1]

TRACEBACK = """\
Traceback (most recent call last):
  File "/home/ada/train.py", line 12, in <module>
    main()
  File "/venv/lib/python3.11/site-packages/lib/core.py", line 3, in call
    raise {}
{}
"""


def labelled(rank: int, text: str) -> str:
    return "".join(f"{rank}: {line}\n" for line in text.splitlines())


def told(text: str) -> tuple[str, str, str]:
    found = explain_output(Output(text))
    if found.root is None or found.fault is None:
        return "", "", ""
    return found.root.text, found.fault.id, found.root.rank


DAEMONS = "{} was unable to reliably start one or more daemons."
END = "srun: error: node2: task 1: Exited with exit code 1\nsrun: Terminating StepId=8.0\n"
STEPS = "".join(f"{rank}: step {n} loss 0.{n} error 0.00{n}\n" for n in range(30) for rank in (0, 1))


@every_row(
    ("error", "class_"),
    [
        ("ValueError: batch of 7", "python-exception"),
        ("mypkg.errors.ShardMissing: shard 3 has no index", "python-exception"),
        ("FileNotFoundError: [Errno 2] No such file or directory: '/data/x'", "file-system-or-quota"),
        ("OSError: [Errno 28] No space left on device", "file-system-or-quota"),
        ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB", "out-of-memory"),
        ("RuntimeError: CUDA error: an illegal memory access was encountered", "cuda-or-hip"),
        ("RuntimeError: store barrier of 4 ranks timed out", "rendezvous"),
        ("AssertionError: Torch not compiled with CUDA enabled", "gpu-handover"),
        ("ModuleNotFoundError: No module named 'apex'", "package"),
        ("KeyError: 'LOCAL_RANK'", "user-configuration"),
        ("socket.gaierror: [Errno -2] Name or service not known", "network-or-dns"),
    ],
)
def test_an_exception_is_the_root_line_and_its_message_tells_the_class(error, class_):
    text = STEPS + labelled(1, TRACEBACK.format("it", error)) + END
    assert told(text) == (f"1: {error}", class_, "1")


def test_the_frame_is_that_of_the_users_code():
    found = explain_output(Output(TRACEBACK.format("it", "ValueError: x")))
    assert found.root is not None
    assert found.root.frame == "/home/ada/train.py:12, in <module>"
    console = TRACEBACK.format("ValueError(1)", "ValueError: 1").replace("/home/ada/train.py", "/usr/bin/ray")
    assert (found := explain_output(Output(console)).root) is not None
    assert found.frame == ""


def test_the_first_of_chained_exceptions_is_the_cause():
    second = TRACEBACK.format("it", "RuntimeError: no pipeline")
    direct = "\nThe above exception was the direct cause of the following exception:\n\n"
    text = TRACEBACK.format("it", "KeyError: 'tokenizer'") + direct + second
    assert told(text)[0] == "KeyError: 'tokenizer'"


@every_row(
    ("first", "second", "root"),
    [
        ("ValueError: invalid literal for int() with base 10: 'gpu'", "ValueError: No GPU is there.", 1),
        ("ValueError: could not convert string to float: 'x'", "OptionError: lr is 'x'", 1),
        ("RuntimeError: Backend 'rocm' is unknown", "RuntimeError: no 'rocm': Backend 'rocm' is unknown.", 1),
        ("KeyError: 'tokenizer of x'", "RuntimeError: no pipeline: 'tokenizer of x'", 0),
        ("RuntimeError: Backend 'rocm' is unknown", "RuntimeError: no pipeline", 0),
    ],
)
def test_the_second_of_chained_exceptions_is_the_root_line_if_it_says_more(first, second, root):
    inner = TRACEBACK.format("it", first).replace(
        "/home/ada/train.py", "/venv/lib/python3.11/site-packages/x.py"
    )
    direct = "\nThe above exception was the direct cause of the following exception:\n\n"
    assert told(inner + direct + TRACEBACK.format("it", second))[0] == (first, second)[root]


def test_the_first_of_two_equal_chained_exceptions_is_the_root_line():
    raised = TRACEBACK.format("it", "OSError: [Errno 122] Disk quota exceeded")
    chained = "\nDuring handling of the above exception, another exception occurred:\n\n"
    found = explain_output(Output(raised + chained + raised))
    assert found.root is not None
    assert found.root.number == raised.count("\n")


def test_a_failed_conversion_in_the_users_code_is_the_root_line():
    first = "ValueError: invalid literal for int() with base 10: 'a'"
    chained = "\nDuring handling of the above exception, another exception occurred:\n\n"
    text = TRACEBACK.format("it", first) + chained + TRACEBACK.format("it", "OptionError: steps")
    assert told(text)[0] == first


@every_row(
    ("line", "class_"),
    [
        ("OSError: 1048576 requested and 524256 written", "file-system-or-quota"),
        ("OSError: 4096 items requested and 12 written", "file-system-or-quota"),
        (
            "RuntimeError: PytorchStreamWriter failed writing file data/1: file write failed",
            "file-system-or-quota",
        ),
        (
            "RuntimeError: [enforce fail at inline_container.cc:659] . unexpected pos 704 vs 598",
            "file-system-or-quota",
        ),
        ("solver: fwrite: No space", "file-system-or-quota"),
        ("main.cpp:(.text+0x2f): undefined reference to `launch_step(float*, int)'", "build"),
        ("ld.lld: error: undefined symbol: launch_step(float*, int)", "build"),
        ("/usr/bin/ld: a.o: multiple definition of `main'", "build"),
        ("./solver: symbol lookup error: ./solver: undefined symbol: launch_step", "loader"),
        ("timeout: sending signal TERM to command 'python3'", "exit-status"),
        ("timeout: sending signal KILL to command 'solver'", "exit-status"),
        ("RuntimeError: File /data/w.pt cannot be opened.", "file-system-or-quota"),
        ("OSError: Output file out/a.nc could not be created", "file-system-or-quota"),
        ("ValueError: cannot create the output file a.nc", "file-system-or-quota"),
    ],
)
def test_the_class_of_writes_links_and_time_limits(line, class_):
    row = classify(line)
    assert row is not None
    assert row.class_ == class_
    assert told(f"step 1\n{line}\n")[:2] == (line, class_)


@every_row(
    ("line", "class_", "retry"),
    [
        (
            "Exception: Installed CUDA version 11.0 does not match the version torch was compiled with 10.1",
            "build",
            "image",
        ),
        (
            "RuntimeError: The detected CUDA version (11.8) mismatches the version used to compile it",
            "build",
            "image",
        ),
        (
            "RuntimeError: Failed to find C compiler. Please specify via CC environment variable.",
            "program-start",
            "image",
        ),
        (
            "InvalidCxxCompiler: No working C++ compiler found in cpp.cxx: (None, 'g++')",
            "program-start",
            "image",
        ),
        ("configure: error: no acceptable C compiler found in $PATH", "build", "user"),
        (
            "RuntimeError: CUDA error: CUDA-capable device(s) is/are busy or unavailable",
            "cuda-or-hip",
            "node",
        ),
        (
            "RuntimeError: CUDA error: all CUDA-capable devices are busy or unavailable",
            "cuda-or-hip",
            "node",
        ),
        (
            "[mpiexec@n1] HYDU_create_process (l.c:69): execvp error on file /o/hydra_pmi_proxy (No such)",
            "program-start",
            "user",
        ),
    ],
    ids=lambda line: line[:40],
)
def test_the_class_of_what_an_image_or_a_node_lacks(line, class_, retry):
    found = explain_output(Output(f"step 1\n{line}\n"))
    assert found.root is not None
    assert found.fault is not None
    assert (found.root.text, found.fault.id, found.retry) == (line, class_, retry)


def test_a_rank_that_lost_another_one_is_a_consequence():
    lost = "RuntimeError: [/pytorch/gloo/pair.cc:525] Connection closed by peer [10.0.0.2]:4711"
    text = (
        labelled(0, TRACEBACK.format("it", lost)) + labelled(1, TRACEBACK.format("it", "KeyError: 'x'")) + END
    )
    found = explain_output(Output(text))
    assert told(text) == ("1: KeyError: 'x'", "python-exception", "1")
    assert [line.partition(": ")[2] for line in found.consequences] == [f"0: {lost}"]


def test_the_signal_that_ended_a_rank_is_the_root_line_where_the_others_only_lost_it():
    lost = "RuntimeError: [/pytorch/gloo/pair.cc:525] Connection closed by peer [10.0.0.2]:4711"
    killed = "srun: error: node2: task 1: Killed"
    text = STEPS + labelled(0, TRACEBACK.format("it", lost)) + f"{killed}\n"
    assert told(text) == (killed, "signal", "1")


def test_the_last_words_of_the_rank_that_failed_first_are_shown_where_no_line_has_words_of_failure():
    text = f"{STEPS}1: config: no section [optimizer]\n{END}"
    assert told(text) == ("1: config: no section [optimizer]", "exit-status", "1")


@every_row(
    ("text", "class_", "retry"),
    [
        ("sbatch: error: Batch job submission failed: Some new reason\n", "scheduler-refusal", "user"),
        ("salloc: Prolog failure on node node1\n", "node-or-hardware", "node"),
        (
            "0: slurmstepd: error: *** STEP 8.0 ON n1 CANCELLED AT 2026 DUE TO TIME LIMIT ***\n",
            "time-limit",
            "user",
        ),
        ("slurmstepd: error: execve(): trainer: No such file or directory\n", "program-start", "user"),
        ("FATAL:   some new reason of a runtime\n", "container-runtime", "user"),
        ("./a.out: error while loading shared libraries: libx.so.1: cannot open\n", "loader", "image"),
        ("n1:12:34 [0] misc/socket.cc:533 NCCL WARN something new\n", "nccl-or-rccl", "user"),
        ("curl: (6) Could not resolve host: data.example\n", "network-or-dns", "site"),
        ("[n1:1:0:1] ib_mlx5.c:9 UCX  ERROR something new\n", "ucx-or-libfabric", "user"),
        ("Error response from daemon: something new\n", "container-runtime", "user"),
    ],
)
def test_an_unknown_line_of_a_known_program_has_a_class(text, class_, retry):
    found = explain_output(Output(STEPS + text))
    assert found.fault is not None
    assert (found.fault.id, found.retry) == (class_, retry)


@every_row(
    "text",
    [
        "epoch 1: accuracy 0.97\n",
        f"{STEPS}done\n",
        "n1:12:34 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via SHM\n",
        "WARNING: something failed, using the default\n",
        "finished: 0 errors, 0 failed\n",
        "val_error: 0.0312\n",
        "CUDA version 11.0 does not match the version torch was compiled with 11.1 but APIs are alike\n",
    ],
)
def test_output_without_a_failure_has_no_root_line(text):
    assert told(text) == ("", "", "")


def test_a_signature_counts_only_where_its_conditions_hold():
    barrier = "tensorflow: DEADLINE_EXCEEDED: Barrier timed out. Id: x"
    ids = [
        [f.id for f in explain_output(Output(text)).findings]
        for text in (barrier, f"{barrier}\njax_worker\n")
    ]
    assert ids[0][:1] == ["tensorflow-cluster"]
    assert "tensorflow-cluster" not in ids[1]
    read = "cma_ep.c:88 process_vm_readv(pid=1 {0x1,2}-->{0x3,4}) returned -1: Bad address"
    assert "namespaces-split-a-node" not in [f.id for f in explain_output(Output(read)).findings]


def test_every_row_has_a_class_and_every_class_a_row():
    rows = {row.class_ for row in fault_lines() if row.class_}
    assert rows <= set(classes())
    assert {row.strength for row in fault_lines()} <= {1, 2, 3, 4, 5}
    assert classify("nothing of interest") is None
    assert all(row.fix for row in classes().values())


@every_row(
    "report",
    [
        "slurmstepd: error: *** STEP 7.0 ON n1 CANCELLED AT 2026-11-26T00:17:17 DUE TO TASK FAILURE ***",
        "srun: error: n2: task 3: Killed",
        "Primary job  terminated normally, but 1 process returned",
        "MPI_ABORT was invoked on rank 2 in communicator MPI_COMM_WORLD",
        "=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES",
        "prterun noticed that process rank 1 with PID 7 on node n1 exited on signal 9",
    ],
)
def test_each_launcher_reports_a_failed_rank(report):
    assert "rank-failed" in [finding.id for finding in explain_output(Output(report)).findings]


@every_row("file", sorted((HERE / "healthy").glob("*.txt")), ids=lambda f: f.stem)
def test_output_that_means_no_harm_has_no_root_line(file):
    assert told(file.read_text("utf-8")) == ("", "", "")


NO_GPU = "jaxlib.XlaRuntimeError: INTERNAL: no supported devices found for platform {}"
NO_BACKEND = "RuntimeError: Unable to initialize backend '{}': INTERNAL: no supported devices"


def of_backend(name):
    """Return two tracebacks of JAX that only say that a back end has no device."""
    second = TRACEBACK.format("it", NO_BACKEND.format(name))
    during = "\nDuring handling of the above exception, another exception occurred:\n\n"
    return TRACEBACK.format("it", NO_GPU.format(name.upper())) + during + second


@every_row(
    ("warning", "error", "cause", "class_", "retry"),
    [
        (
            "W0107 09:14:55.0  77 gpu_client.cc:9] skipping device 3: cuDeviceGet: CUDA_ERROR_INVALID_DEVICE",
            of_backend("cuda"),
            "gpu-number",
            "gpu-handover",
            "user",
        ),
        (
            "2026-02-03 10:00:01.5: W xla/ex.cc:81] context of CUDA:2 failed: CUDA_ERROR_DEVICE_UNAVAILABLE",
            of_backend("cuda"),
            "gpu-busy",
            "cuda-or-hip",
            "node",
        ),
        (
            "W0107 09:14:55.0  77 rocm.cc:4] no context for device 0: hipErrorNoBinaryForGpu",
            of_backend("rocm"),
            "rocm-no-kernel",
            "cuda-or-hip",
            "image",
        ),
        (
            "cuda/__init__.py:180: UserWarning: CUDA initialization: Error 802: system not yet initialized",
            TRACEBACK.format("it", "RuntimeError: No CUDA GPUs are available"),
            "gpu-fabric-manager",
            "node-or-hardware",
            "node",
        ),
    ],
    ids=["ordinal", "busy", "rocm", "torch"],
)
def test_a_gpu_error_before_the_news_that_no_gpu_was_found_is_the_root_line(
    warning, error, cause, class_, retry
):
    found = explain_output(Output(f"start\n{warning}\n{error}{END}"))
    assert (found.root and found.root.text, found.fault and found.fault.id) == (warning, class_)
    assert [f.id for f in found.findings if f.role == "cause"] == [cause]
    assert found.retry == retry
    assert "line 8: " in found.consequences[0]


def test_the_news_that_no_gpu_was_found_is_the_root_line_of_a_rank_without_another_error():
    other = "0: W executor.cc:81] CUDA:2 failed: CUDA_ERROR_DEVICE_UNAVAILABLE\n"
    for before in ("", other):
        text = before + labelled(1, of_backend("cuda")) + END
        assert told(text) == (f"1: {NO_GPU.format('CUDA')}", "gpu-handover", "1")


@every_row(
    ("line", "families"),
    [
        ("RuntimeError: HIP error: device-side assert triggered", ["HIP error"]),
        ("RuntimeError: CUDA error: device-side assert triggered", ["CUDA error"]),
        ("hipErrorNoDevice after cudaErrorNoDevice", ["CUDA error", "HIP error"]),
        ("OSError: [Errno 28] No space left on device", ["errno"]),
    ],
)
def test_a_text_that_two_families_have_is_shown_for_the_family_that_the_line_names(line, families):
    assert [code.family for code in error_codes((line,))] == families


@every_row(
    ("lines", "root", "class_"),
    [
        (
            [
                "JobSubmitError:",
                "sbatch: error: Batch job submission failed: Invalid partition name specified",
            ],
            "JobSubmitError: sbatch: error",
            "scheduler-refusal",
        ),
        (
            ["sbatch: error: spank: lua.so: Plugin file not found", "sbatch: error: invalid partition: gpu9"],
            "sbatch: error: invalid partition",
            "scheduler-refusal",
        ),
        (
            [
                "command: srun --gres=gpu:4 nvidia-smi error",
                "OSError: [Errno 122] Disk quota exceeded: 'ckpt'",
            ],
            "OSError: [Errno 122]",
            "file-system-or-quota",
        ),
        (
            [
                "MPI_ABORT was invoked on rank 3 in communicator MPI_COMM_WORLD",
                "[n1:99] PMIX ERROR: LOST-CONNECTION in file server/pmix_server.c at line 90",
            ],
            "MPI_ABORT was invoked",
            "mpi",
        ),
        (
            [
                "libfabric:verbs:ep_ctrl:vrb_open():6<warn> rdma_create_ep failed: Cannot allocate memory",
                "It looks like MPI_INIT failed for some reason; your parallel process is",
                "[n1:42] *** An error occurred in MPI_Init_thread",
            ],
            "rdma_create_ep failed",
            "ucx-or-libfabric",
        ),
        (
            [
                "libfabric:81:efa:mr:efa_mr_reg():254<warn> efa_cmd_reg_mr: Invalid argument(22)",
                "Abort(9) on node 3 (rank 3 in comm 0): Fatal error in PMPI_Win_create: Other MPI error",
            ],
            "efa_cmd_reg_mr",
            "ucx-or-libfabric",
        ),
        (
            [
                "libfabric:81:1650000000:psm2:mr:psmx2_mr_reg():12<warn> Unable to register MR: Bad address",
                "Abort(9) on node 3 (rank 3 in comm 0): Fatal error in PMPI_Win_create: Other MPI error",
            ],
            "Unable to register MR",
            "ucx-or-libfabric",
        ),
        (
            ["kex_exchange_identification: read: Connection reset by peer", DAEMONS.format("mpirun")],
            "kex_exchange_identification",
            "network-or-dns",
        ),
        (["Host key verification failed.", DAEMONS.format("ORTE")], "Host key", "network-or-dns"),
        (
            ["ada@node2: Permission denied (publickey,hostbased).", DAEMONS.format("PRTE")],
            "ada@node2",
            "network-or-dns",
        ),
        (
            [
                "Launching horovod task function was not successful:",
                "ssh: connect to host node2 port 22: Connection refused",
            ],
            "ssh: connect",
            "network-or-dns",
        ),
        ([DAEMONS.format("prterun"), "This usually is caused by:"], DAEMONS.format("prterun"), "mpi"),
        (
            [
                "sbatch: error: If munged is up, restart with --num-threads=10",
                'sbatch: error: Munge encode failed: Failed to access "/run/munge/munge.socket.2"',
            ],
            "Munge encode failed",
            "scheduler-start",
        ),
        (
            [
                "[rank0]:[E1 GroupNCCL.cpp:6] Watchdog caught collective operation timeout: WorkNCCL(",
                "[rank1]:[E1 ProcessGroupNCCL.cpp:9] [PG ID 0 Rank 1] Timeout at NCCL work: 126, last",
            ],
            "WorkNCCL(",
            "nccl-or-rccl",
        ),
        (
            [
                "docker: Error response from daemon: OCI runtime failed: stderr: Using requested mode 'cdi'",
                "nvidia-container-cli: device error: unknown device id: 9: unknown.",
            ],
            "unknown device id",
            "gpu-handover",
        ),
        (
            [
                "slurmstepd: error: pyxis: container start failed with error code: 1",
                "slurmstepd: error: pyxis:     enroot-nsenter: failed to join: Operation not permitted",
            ],
            "enroot-nsenter",
            "container-runtime",
        ),
        (
            ["Command error:", "  ch-run[7]: error: can't mount /a: Operation not permitted"],
            "can't mount",
            "container-runtime",
        ),
        (
            ['--> 12     raise ValueError("bad shard")', "     13     # error", "ValueError: bad shard 7"],
            "ValueError: bad shard 7",
            "python-exception",
        ),
        (
            ["RuntimeError: worker process 71 is killed by signal: Killed.", "RuntimeError: worker 3 died"],
            "killed by signal",
            "out-of-memory",
        ),
        (
            [
                "[W] [c10d] The server socket has failed to bind to [::]:99 (errno: 98 - Address",
                "[E] [c10d] The server socket has failed to listen on any local network address.",
            ],
            "[::]:99",
            "rendezvous",
        ),
        (
            [
                "slurmstepd: error: pyxis: child 71 failed with error code: 1",
                "slurmstepd: error: pyxis: failed to import docker image",
                "slurmstepd: error: pyxis: printing enroot log file:",
                "slurmstepd: error: pyxis:     [ERROR] URL https://a.org/v2/b returned error code: 403",
            ],
            "returned error code: 403",
            "container-runtime",
        ),
        (
            [
                "/spool/slurm_script: line 8:  2411 Killed                  ./solver",
                "slurmstepd: error: Detected 2 oom-kill event(s) in StepId=8.batch cgroup.",
            ],
            "oom-kill",
            "out-of-memory",
        ),
        (
            [
                "RuntimeError: CUDA error: device-side assert triggered",
                "a/Index.cu:7: f: block: [3,0,0], thread: [64,0,0] Assertion `index < size` failed.",
            ],
            "Assertion `index",
            "cuda-or-hip",
        ),
        (
            [
                "Setting up postfix ...",
                "postconf: failed to write /etc/postfix/main.cf",
                "dpkg: error processing package postfix (--configure):",
                "E: Sub-process /usr/bin/dpkg returned an error code (1)",
            ],
            "postconf: failed",
            "build",
        ),
        (
            ["dpkg: error processing package a:", "E: Sub-process /usr/bin/dpkg returned an error code (1)"],
            "error processing package a",
            "build",
        ),
        (
            [
                "sbatch: error: Memory specification can not be satisfied",
                "sbatch: error: Batch job submission failed: Requested node configuration is not available",
            ],
            "Memory specification",
            "scheduler-refusal",
        ),
        (
            [
                "RuntimeError: Failed to import a.b because of the following error (look up to see it):",
                "module 'scipy' has no attribute 'interp'",
            ],
            "module 'scipy'",
            "package",
        ),
        (
            ["+ ray start --address=:6379", "n1.cc:8: Failed to connect to GCS at address :6379"],
            "GCS at",
            "ray",
        ),
        (
            [
                "FATAL:   container creation failed:",
                "mount /a->/a error:",
                "while mounting /a:",
                "destination /a doesn't exist in container",
            ],
            "destination /a",
            "container-runtime",
        ),
        (
            [
                "RuntimeError: unable to open shared memory object </torch_1>",
                "OSError: [Errno 24] Too many open files",
            ],
            "Errno 24",
            "system-limit",
        ),
        (
            [
                "RuntimeError: NCCL error in: a.cpp:7, unhandled cuda error",
                "n1:2:3 [0] p2p.cc:2 NCCL WARN failed to open CUDA IPC handle : 217 no peer access",
            ],
            "217 no peer",
            "nccl-or-rccl",
        ),
        (["the grid must have 3 axes", " Error detected, aborting MPI... proc 0"], "the grid must", "mpi"),
        (
            ["[W] [c10d] The client socket has failed to connect to a:9 (errno: 111 - Connection"],
            "failed to connect to a:9",
            "rendezvous",
        ),
    ],
    ids=lambda lines: lines[0][:30],
)
def test_a_line_that_follows_from_another_one_is_not_the_root_line(lines, root, class_):
    text, found, _ = told("\n".join(lines) + "\n")
    assert root in text
    assert found == class_


def test_the_class_of_an_xid_that_follows_is_that_of_the_one_before():
    assert (
        told("NVRM: Xid (PCI:0000:01:00): 45, pid=7, Ch 02 caused by previous Xid 48\n")[1]
        == "node-or-hardware"
    )


@every_row(
    ("line", "rank"),
    [
        ("Mon Nov  2 09:08:07 2026[1,12]<stderr>:Segmentation fault (core dumped)", "12"),
        ("[1,mpirank:5,node-2]<stderr>:Segmentation fault (core dumped)", "5"),
        ("Abort(15) on node 7 (rank 7 in comm 0): Fatal error in PMPI_Send: Invalid rank, error stack:", "7"),
        ("6: Test command: ./run\n6: RuntimeError: bad shard", ""),
        ("6: RuntimeError: bad shard", ""),
        ("5: step 1\n6: RuntimeError: bad shard", "6"),
        ("  6: RuntimeError: bad shard", "6"),
    ],
)
def test_the_rank_is_read_from_each_form_of_tag(line, rank):
    assert told(f"{line}\n")[2] == rank


@every_row(
    ("line", "class_"),
    [
        ("RuntimeError: The NVIDIA driver on your system is too old (found version 11040).", "cuda-or-hip"),
        ("AttributeError: 'Variable' object has no attribute 'ref'", "package"),
        ("TypeError: Descriptors cannot be created directly.", "package"),
    ],
)
def test_the_class_of_a_known_cause_replaces_a_general_class(line, class_):
    assert told(f"{line}\n")[1] == class_


@every_row(
    ("line", "cause"),
    [
        (
            "E0101 direct_task_transport.cc:9] raylet: failed to connect to all addresses",
            "tensorflow-cluster",
        ),
        ("HIP error: hipErrorInvalidDeviceFunction", "rocm-no-gpu"),
        ("nvidia-container-cli: requirement error: unsatisfied condition: cuda>=12.4", "docker-without-gpu"),
        ("n1: Unable to create send CQ on mlx5_0: Cannot allocate memory", "out-of-memory"),
        ("F nvptx_compiler.cc:478] ptxas returned an error during compilation", "xla-libdevice"),
        ("ImportError: libstdc++.so.6: version `GLIBCXX_3.4.30' not found", "built-on-newer-system"),
        ("inotify_add_watch: No space left on device", "disk-full"),
        ("ray: the worker crashed unexpectedly due to SIGSEGV or other errors", "crashed"),
        ("ssh: Could not resolve hostname n3: Name or service not known", "ssh-refused"),
    ],
)
def test_a_signature_leaves_lines_of_other_programs_alone(line, cause):
    assert cause not in {known.id for known in explain_output(Output(f"{line}\n")).findings}


MISSING = "sim: init_process_group failed in rank 3\n{}RendezvousTimeoutError\n"


HOME_FRAME = '  File "/home/ada/.local/lib/python3.9/site-packages/a/core.py", line 3, in load\n'


@every_row(
    ("text", "roles"),
    [
        (
            "CUDA out of memory. Tried 2 GiB\nslurmstepd: error: Detected 1 oom_kill event in 8.0.\n",
            {"gpu-memory-full": "cause", "out-of-memory": "possible"},
        ),
        (MISSING.format("late\nsim: "), {"torch-rendezvous-incomplete": "cause"}),
        (MISSING.format("late\n"), {"torch-rendezvous-incomplete": "possible"}),
        (MISSING.format("late\n" * 20 + "sim: "), {"torch-rendezvous-incomplete": "possible"}),
        (f"Traceback (most recent call last):\n{HOME_FRAME}", {"user-packages-shadow": "possible"}),
        (
            f"{HOME_FRAME}ModuleNotFoundError: No module named 'a'\n",
            {"python-module-missing": "cause", "user-packages-shadow": "possible"},
        ),
    ],
)
def test_a_cause_far_from_the_root_line_or_beside_another_cause_only_may_matter(text, roles):
    assert {known.id: known.role for known in explain_output(Output(text)).findings} == roles


def watchdog(rank: int, number: int, kind: str) -> str:
    said = "Watchdog caught collective operation timeout"
    return f"[rank{rank}]:[E] [Rank {rank}] {said}: WorkNCCL(SeqNum={number}, OpType={kind})"


@pytest.mark.parametrize(
    ("lines", "collectives"),
    [
        ([watchdog(0, 122, "BROADCAST"), watchdog(1, 126, "ALLREDUCE")],
         ("BROADCAST 122 (rank 0)", "ALLREDUCE 126 (rank 1)")),
        ([watchdog(rank, 8, "ALLREDUCE") for rank in (5, 2, 1, 0)], ("ALLREDUCE 8 (ranks 0-2, 5)",)),
        ([watchdog(3, 8, "ALLREDUCE")], ()),
        (["RuntimeError: broken"], ()),
    ],
)  # fmt: skip
def test_the_collectives_in_which_ranks_waited_are_named(lines, collectives):
    root = explain_output(Output("\n".join(lines))).root
    assert root.collectives == collectives


@pytest.mark.parametrize(
    ("reason", "fault", "retry"),
    [
        (" DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS", "node-or-hardware", "node"),
        (" DUE TO TIME LIMIT", "time-limit", "user"),
        (" DUE TO PREEMPTION", "cancelled", "transient"),
        ("", "cancelled", "transient"),
    ],
)
def test_a_cancelled_step_has_the_class_of_slurm_s_reason(reason, fault, retry):
    line = f"slurmstepd: error: *** STEP 12.0 ON node1 CANCELLED AT 2026-11-27T10:00:00{reason} ***"
    told = explain_output(Output(f"step 1\nstep 2\n{line}\n"))
    assert told.fault is not None
    assert (told.fault.id, told.retry) == (fault, retry)
