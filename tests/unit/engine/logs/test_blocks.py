"""Test messages that Open MPI writes between two lines of dashes, and errors in other languages."""

from tests.unit.tables import every_row
from toolkit.engine.logs.explanation import explain_output
from toolkit.engine.logs.joblines import Output

DASHES = "-" * 74
STEPS = "step 1 loss 0.41\nstep 2 loss 0.38\n"
SENTENCES = {
    0: "The list of nodes has a host that was not part of the job, so no rank was placed: Host: node7",
    1: "Both lists of interfaces were specified: Include: eth0",
}
REJECTED = (
    "The list of nodes has a host that was not part of\nthe job, so no rank was placed:\n\n  Host: node7\n"
)
MADE_UP = "Both lists of interfaces were specified:\n\n  Include: eth0\n  Exclude: eth1\n"


def block(text: str) -> str:
    return f"{DASHES}\n{text}{DASHES}\n"


def root(log: str) -> tuple[str, str]:
    told = explain_output(Output(log))
    return (told.root.text if told.root else "", told.fault.id if told.fault else "")


@every_row("number", [0, 1])
@every_row("end", ["", "srun: error: node1: task 0: Exited with exit code 1\n"])
def test_the_first_sentence_of_an_unknown_message_is_the_root_line(number, end):
    text = (REJECTED, MADE_UP)[number]
    assert root(STEPS + block(text) + end) == (SENTENCES[number], "mpi")


def test_a_later_sentence_of_the_message_leads_to_its_first_line():
    text = "A rule for the placement was given twice.\nThe launcher does not know which is wrong.\n"
    assert root(STEPS + block(text)) == ("A rule for the placement was given twice.", "mpi")


@every_row(
    "text",
    [
        "The fast path is not available; another transport will be used.\n",
        "No device of this kind was found. The setting is ignored.\n",
        "WARNING: a file of settings is missing.\n",
        "Rank 0 of this program runs on node1.\n",
    ],
)
def test_a_message_that_only_informs_is_no_failure(text):
    assert root(STEPS + block(text)) == ("", "")


def test_lines_of_dashes_of_other_programs_hold_no_message_of_mpi():
    raised = (
        'Traceback (most recent call last):\n  File "t.py", line 2, in <module>\n    fit()\n'
        "ValueError: bad shape\n"
    )
    for width in (74, 75, 80):
        rule = "-" * width + "\n"
        assert root(f"{rule}Training with a.yaml\n{raised}{rule}") == (
            "ValueError: bad shape",
            "python-exception",
        )
    table = f"{DASHES}\n0 | model | Net | 12 no grads\n{DASHES}\n"
    ended = "srun: error: n1: task 3: Exited with exit code 3\n"
    assert root(table + ended) == (ended.strip(), "exit-status")
    assert root(block(REJECTED) + STEPS * 2 + ended)[0] != SENTENCES[0]


def test_a_message_after_which_the_program_goes_on_is_no_failure():
    assert root(block(REJECTED) + STEPS * 3) == ("", "")


def test_a_line_of_the_program_between_two_messages_belongs_to_neither():
    stopped = "mpirun has exited due to process rank 2 with PID 7 on\nnode node2 exiting improperly.\n"
    log = STEPS + block(REJECTED) + "Error: the grid file is not complete\n" + block(stopped)
    assert root(log) == ("Error: the grid file is not complete", "unknown-error")


@every_row(
    ("line", "class_"),
    [
        ("./job.sh: Zeile 7: trian.py: Kommando nicht gefunden.", "program-start"),
        ("./job.sh: line 7: gmx_mpi\u00a0: commande introuvable", "program-start"),
        ("cat: labels.csv: Datei oder Verzeichnis nicht gefunden", "file-system-or-quota"),
        (
            "cp: no se puede efectuar `stat' sobre 'a.h5': No existe el fichero o el directorio",
            "file-system-or-quota",
        ),
        ("mkdir: /scratch/run: Permesso negato", "file-system-or-quota"),
        ("touch: a.log: Aucun espace disponible sur le périphérique", "file-system-or-quota"),
        ("./job.sh: ligne 9 : 2417 Erreur de segmentation  ./solver", "signal"),
        ("./a: Falha de segmentação", "signal"),
        ("./a: Violación de segmento", "signal"),
        ("cat: a: Permissão recusada", "file-system-or-quota"),
        ("cp: a: Se ha excedido la cuota de disco", "file-system-or-quota"),
    ],
)
def test_errors_of_the_shell_in_other_languages_are_read(line, class_):
    assert root(f"{STEPS}{line}\nsrun: error: node1: task 0: Exited with exit code 1\n") == (line, class_)


@every_row(
    ("line", "class_"),
    [
        ("slurmstepd: error: execve(): mkdir.sh: No such file or directory", "program-start"),
        ("slurm_script: line 12: run.py --nodes ${N*G}: bad substitution", "user-configuration"),
        (
            '  File "fit.py", line 4\n    x = (\n        ^\nSyntaxError: unexpected EOF while parsing',
            "python-exception",
        ),
        (
            "Fatal Error: Cannot open module file 'grid.mod' for reading at (1): No such file or directory",
            "build",
        ),
        (
            "n1:7.app: Unable to create recv CQ of size 4096 on mlx5_1: Cannot allocate memory",
            "ucx-or-libfabric",
        ),
        ("RuntimeError: index has the type CUDAHalfTensor, expected CUDALongTensor", "python-exception"),
        ('RuntimeError: size > 0 INTERNAL ASSERT FAILED at "/src/c10d/NCCLUtils.hpp":51', "nccl-or-rccl"),
        ("failed before prolog: 11/02/2025 07:12:09 [0:4711]: cannot chdir to /home/ada", "scheduler-start"),
        ("BIND MOUNT FAILED from /var/udiMount//data to /var/udiMount/mnt", "container-runtime"),
    ],
)
def test_the_class_is_of_what_failed_and_not_of_a_word_in_the_line(line, class_):
    assert root(STEPS + line) == (line.splitlines()[-1].strip(), class_)


def test_a_program_that_fails_after_an_error_of_slurmstepd_is_the_failure():
    energy = "slurmstepd: error: slurm_get_node_energy: Socket timed out on send/recv operation\n"
    copied = "./copy.sh: line 124: /bin/mv: Input/output error"
    assert root(energy + copied + "\n")[0] == copied
    assert root(energy + STEPS) == ("", "")


def test_the_reason_of_the_c_runtime_is_shown_and_not_the_abort_after_it():
    log = "[rank0]:terminate called without an active exception\n[rank0]:Fatal Python error: Aborted\n"
    assert root(STEPS + log)[0].endswith("terminate called without an active exception")


def test_the_first_of_several_messages_about_one_failure_is_the_root_line():
    noted = "[node1:7] [[3,0],0] ORTE_ERROR_LOG: Error in file orte/util/a.c at line 9\n"
    inner = (
        "It looks like orte_init failed for some reason.\nThis failure appears to be an internal failure.\n"
    )
    assert root(STEPS + block(REJECTED) + noted * 2 + block(inner))[0] == SENTENCES[0]
    assert root(STEPS + block(REJECTED) + block(inner))[0] == SENTENCES[0]
    warned = "WARNING: a device is not used.\n"
    assert root(STEPS + block(warned) + block(inner))[0] == inner.splitlines()[0]


def test_memory_that_a_go_program_cannot_reserve_is_out_of_memory():
    log = (
        "srun: error: node1: task 0: Exited with exit code 2\n0: fatal error: failed to reserve page memory\n"
    )
    assert root(STEPS + log) == ("0: fatal error: failed to reserve page memory", "out-of-memory")


def test_the_message_of_a_tensorflow_graph_is_shown_and_not_the_place_of_its_node():
    message = "Operands differ: one rank sent 4 rows, and another rank sent 5 rows."
    log = (
        'Traceback (most recent call last):\n  File "train.py", line 9, in <module>\n    step()\n'
        "tensorflow.python.framework.errors_impl.InvalidArgumentError: Graph execution error:\n\n"
        'Detected at node sum_1 defined at (most recent call last):\n  File "train.py", line 5, in step\n\n'
        f"{message}\n\t [[{{{{node sum_1}}}}]] [Op:__inference_step_26]\n"
    )
    assert root(STEPS + log) == (message, "python-exception")


def test_a_message_of_tensorflows_start_is_not_the_last_word_of_a_rank():
    started = (
        "1: WARNING: All log messages before absl::InitializeLog() is called are written to STDERR\n"
        "1: I0000 00:00:1795817842.246456     621 port.cc:153] oneDNN custom operations are on.\n"
    )
    ended = "srun: error: node2: task 1: Exited with exit code 1\nsrun: error: node1: task 0: Terminated\n"
    own = "1: the mesh of this rank has no cells\n"
    reason = "0: data distribution: there are only 0 items for 2 ranks\n"
    assert root(reason + started + ended)[0] == reason.strip()
    assert root(reason + own + started + ended)[0] == own.strip()
    assert root(started + ended)[0].startswith("srun: error: node2: task 1")
