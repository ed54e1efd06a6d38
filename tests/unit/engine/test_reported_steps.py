"""Test that toolkit's first finding for a failed step or container start is the cause in its public issue."""

from tests.unit.engine.test_reported import told
from tests.unit.tables import every_row
from toolkit.engine.logs.signature_match import explain

SLURM = [
    # NVIDIA/deepops 1179
    (
        """\
srun: error: Task launch for StepId=13.0 failed on node node1: Invalid job credential
srun: error: Application launch failed: Invalid job credential
srun: error: Timed out waiting for job step to complete
""",
        ["slurm-credential"],
    ),
    # JuliaParallel/ClusterManagers.jl 91
    (
        "srun: error: Task launch for 14774.0 failed on node node1: Job credential expired",
        ["slurm-credential"],
    ),
    ("srun: error: Unable to create step for job 10: Error generating job credential", ["slurm-credential"]),
    # geopm/geopm 1020: the fault is on one node, not in the controller
    (
        "srun: error: Task launch for 73706.26 failed on node node1: Socket timed out on send/recv operation",
        ["slurm-node-not-reached"],
    ),
    ("srun: error: Application launch failed: Communication connection failure", ["slurm-node-not-reached"]),
    (
        "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation",
        ["slurm-controller"],
    ),
    # openpmix/openpmix 3559: Slurm reports a failed node because its plugin failed
    (
        """\
slurmstepd: error:  mpi/pmix_v5: pmixp_p2p_send: node1 [4]: pmixp_utils.c:469: send failed, rc=1001
srun: error: Node failure on node1
""",
        ["slurm-pmix-between-nodes", "node-failed"],
    ),
    # ArjunaCluster/ArjunaUsers 21
    (
        "slurmstepd: error: execve(): /tmp/slurmd/job2997814/slurm_script: No such file or directory",
        ["job-script-not-started"],
    ),
    # pmodels/mpich 6924: a user cancelled the job, so there is no other cause
    (
        "slurmstepd: error: *** STEP 28936391.1 ON node1 CANCELLED AT 2024-02-26T11:17:29 ***",
        ["slurm-cancelled"],
    ),
    (
        "slurmstepd: error: *** JOB 12 ON n1 CANCELLED AT 2024-02-26T11:17:29 DUE TO TIME LIMIT ***",
        ["time-limit"],
    ),
    # snakemake/snakemake-executor-plugin-slurm 225
    ("srun: error: Application launch failed: Unable to layout tasks on given cpus", ["slurm-cpu-bind"]),
    # geodesymiami/rsmas_insar 512, clustervision/trinity 193 and awslabs/awsome-distributed-ai 205
    ("slurmstepd: error: Unable to establish control machine address", ["slurm-controller"]),
    ('sbatch: error: s_p_parse_file: unable to status file "/etc/slurm/slurm.conf"', ["slurm-configuration"]),
    ("sbatch: error: _establish_config_source: failed to fetch config", ["slurm-configuration"]),
]


@every_row(("text", "ids"), SLURM)
def test_what_slurm_says_of_a_step_names_whose_fault_it_is(text, ids):
    assert told(text) == ids


def test_a_step_that_waited_and_was_made_is_no_trouble():
    waits = "srun: Job 12 step creation temporarily disabled, retrying (Requested nodes are busy)"
    assert told(waits) == ["slurm-step-waits"]
    assert told(f"{waits}\nsrun: Step created for StepId=12.1\n") == []


def test_what_ends_the_ranks_is_left_out_where_the_cause_is_known():
    ends = [
        "slurm_script: line 28:  8156 Killed                  python3 train.py",
        "slurmstepd: error: *** STEP 12.0 ON node1 CANCELLED AT 2026-11-21T05:00:00 ***",
    ]
    assert told("\n".join(ends)) == ["killed", "slurm-cancelled"]
    oom = "slurmstepd: error: Detected 1 oom_kill event in StepId=12.0. Some were OOM Killed."
    assert told("\n".join([*ends, oom])) == ["out-of-memory"]


@every_row(
    "line",
    [
        "mpirun noticed that process rank 1 with PID 0 on node node1 exited on signal 6 (Aborted).",
        "Primary job  terminated normally, but 1 process returned",
        "MPI_ABORT was invoked on rank 0 in communicator MPI_COMM_WORLD",
        "=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES",
    ],
)
def test_an_mpirun_that_ends_the_others_says_so_as_slurm_does(line):
    (finding,) = explain(line)
    assert (finding.id, finding.severity) == ("rank-failed", "info")


SQUASH = "FATAL:   container creation failed: mount /proc/self/fd/3->/rootfs error: while "
RUNTIME = [
    # apptainer/singularity 267 and 6507, of Singularity 2
    ("ERROR  : User namespace not supported, and program not running privileged.", ["user-namespaces-off"]),
    ("ERROR  : Failed invoking the NEWUSER namespace runtime: Invalid argument", ["user-namespaces-off"]),
    # apptainer/apptainer 949, 2121
    (f"{SQUASH}mounting image /proc/self/fd/3: squashfuse_ll failed to mount /rootfs in 10s", ["fuse-slow"]),
    (
        f"{SQUASH}mounting image /proc/self/fd/3: kernel reported a bad superblock for squashfs",
        ["image-damaged"],
    ),
    # apptainer/singularity 6196
    (
        "FATAL:   while loading overlay images: currently in use for writing by another process",
        ["overlay-in-use"],
    ),
    # RegnerM2015/scBreast_scRNA_scATAC_2024 1, apptainer/singularity 6500
    (
        "FATAL:   While making image from oci registry: write ./tmp-copy-3780389766: no space left on device",
        ["disk-full"],
    ),
    (
        "FATAL:   while creating squashfs: create command failed: exit status 1: No space left on device",
        ["disk-full"],
    ),
    ("FATAL:   failed to open /bin/sh for inspection: read /bin/sh: stale NFS file handle", ["stale-file"]),
    ("slurmstepd: error: pyxis: failed to import docker image", ["pyxis"]),
    # taw10/crystfel 17, apptainer/singularity 1205, apptainer/apptainer 2769, horovod/horovod 604
    (
        'FATAL:   While making image from oci registry: Get "https://example.org/v2/": i/o timeout',
        ["image-not-fetched"],
    ),
    ("ERROR  : There was an error binding the path /nfs: Permission denied", ["bind-denied"]),
    ("ERROR  : Failed to restore current working directory: Permission denied", ["bind-denied"]),
    ("WARNING: Could not find any NVIDIA binaries on this host!", ["gpu-without-driver"]),
    # apptainer/apptainer 2189: Apptainer's log of its cleanup is not a cause
    (
        """\
INFO:    Cleanup error: while stopping driver for /rootfs: squashfuse_ll exited: fuse: failed to unmount
FATAL:   container creation failed: while applying cgroups config: Interactive authentication required.
""",
        ["cgroups-denied"],
    ),
]


@every_row(("text", "ids"), RUNTIME)
def test_what_the_runtime_refuses_is_known_in_the_words_of_its_releases(text, ids):
    assert told(text) == ids
