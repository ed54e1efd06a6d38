#!/bin/bash
# Made by toolkit. Needs only Slurm, singularity and the image. Submit with: sbatch job.sh
#
# Launch mode torch: Open MPI 4.1.4 in the image uses PMIx 4.2.2, compatible with Slurm's PMIx 5.0.7
#
#SBATCH --job-name=mnist
#SBATCH --nodes=2
#SBATCH --ntasks=4
#SBATCH --ntasks-per-node=2
#SBATCH --time=01:00:00
#SBATCH --output=output.log
#SBATCH --open-mode=append

set -u
# After sbatch --export=NONE, srun would pass no variable of this shell to its steps, not even PATH (srun(1), --export).
unset SLURM_EXPORT_ENV

# toolkit writes the files of this job to this folder.
job_dir=/work/ada/toolkit/runs/mnist-1
mkdir -p -- "$job_dir" || exit 1
cd -- "$job_dir" || exit 1

# Record the time at which each part of the start begins, for `toolkit bench start`.
rm -f start-times
mark() { echo "$1 ${EPOCHREALTIME:-$(date +%s)}" >> start-times; }
# Record the number of bytes of output that this node wrote, so that a reader on another node can wait for all bytes.
leave_size() { echo "output $(stat -Lc %s "/proc/$$/fd/1" 2> /dev/null)" >> start-times; }
mark script
# Write the exit status to a file, because not every cluster keeps accounting records. Slurm starts a job
# again after a node failure: remove the exit status of the first start.
rm -f exit-code stop-asked
leave_status() {
    local status=$?
    # If a signal ends this shell during a foreground command, $? is the status of the previous command, and `jobs -r`
    # lists the foreground command without an &. A trap for the signal would run only after this command.
    case "$(jobs -r)" in "" | *"&") ;; *) status=143 ;; esac
    rm -f .secret
    leave_size
    echo "$status" > exit-code.part && mv exit-code.part exit-code
}
trap leave_status EXIT

# Ranks that communicate over TCP share this secret, and refuse connections without the secret.
rm -f .secret
(umask 077 && head -c 32 /dev/urandom | od -An -v -tx1 | tr -d ' \n' > .secret) || exit 1

command -v singularity > /dev/null || {
    echo "job: singularity is not on PATH of $(hostname); load the module of singularity or ask the centre" >&2
    exit 127
}

echo "job: $SLURM_JOB_ID, $SLURM_NTASKS ranks on $SLURM_JOB_NODELIST, mode torch"

# Each rank reads this file in the container, then executes the command. The file names the node of rank 0. This script looks up
# the node names, because the image lacks the commands of the scheduler. The port is free on the first node, and
# differs between jobs.
find_peers() {
    local nodes first count job port
    nodes=$(scontrol show hostnames "$SLURM_JOB_NODELIST") job=$SLURM_JOB_ID
    [ -n "$nodes" ] || return
    count=$(wc -l <<< "$nodes") first=${nodes%%$'\n'*} nodes=${nodes//$'\n'/ }
    # Slurm knows the address of a node whose name does not resolve.
    getent hosts "$first" > /dev/null || first=$(scontrol --oneliner show node "$first" | sed -n 's/.* NodeAddr=\([^ ]*\) .*/\1/p')
    port=$((16384 + job * 16 % 16000))
    while grep -qE "^ *[0-9]+: [0-9A-F]+:($(printf '%04X|' $(seq "$port" $((port + 0))))none) " \
        /proc/net/tcp /proc/net/tcp6 2> /dev/null; do
        port=$((port + 1))
    done
    {
        printf '%s=%q\n' first "$first" nodes "$nodes" port "$port" job "$job" node_count "$count" \
            local_ranks 2 ranks $((count * 2))
        cat << 'END'
rank="$SLURM_PROCID"
local_rank="$SLURM_LOCALID"
node_rank="$SLURM_NODEID"
export MASTER_ADDR="$first" MASTER_PORT="$port"
export RANK="$rank" LOCAL_RANK="$local_rank" NODE_RANK="$node_rank"
export WORLD_SIZE="$ranks" LOCAL_WORLD_SIZE="$local_ranks"
[ "$rank" != 0 ] || date "+container %s.%N" >> "${0%/*}/start-times"
exec "$@"
END
    } > toolkit-ranks.sh || return
}
find_peers || {
    echo "job: the addresses of the job's nodes could not be resolved" >&2
    exit 1
}

# This check runs in each rank: it initializes PyTorch as the program does and reads the world size.
# shellcheck disable=SC2016
printf '%s' '"""Check the world of a program without MPI. Every rank runs this inside the image before the program:

    python toolkit-peers.py torch|jax|tf-config [--gpus N] --tasks N

The ranks join as the program does, count each other, and add up a number. Exit status 1 means that they do
not form one world. If the image lacks the framework, the script checks nothing, because the program may
include the framework itself.
"""

import os
import sys
import time

SECONDS = 120
MEGABYTES = 16


def by_torch(gpus):
    import datetime

    import torch
    import torch.distributed as dist

    if gpus and torch.cuda.device_count() == 0:
        raise RuntimeError("PyTorch %s sees no GPU" % torch.__version__)
    dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=SECONDS))
    total, many = torch.ones(1), torch.ones(MEGABYTES << 18)
    dist.all_reduce(total)
    begun = time.time()
    dist.all_reduce(many)
    took = time.time() - begun
    size, rank = dist.get_world_size(), dist.get_rank()
    dist.destroy_process_group()
    speed = "%d MB added up in %.2f s by Gloo" % (MEGABYTES, took)
    return rank, size, int(total.item()), "PyTorch %s, %s" % (torch.__version__, speed)


def by_jax(gpus):
    import jax

    if gpus and jax.default_backend() == "cpu":
        raise RuntimeError("JAX %s sees no GPU" % jax.__version__)
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(
        coordinator_address=os.environ["JAX_COORDINATOR_ADDRESS"],
        num_processes=int(os.environ["JAX_NUM_PROCESSES"]),
        process_id=int(os.environ["JAX_PROCESS_ID"]),
        initialization_timeout=SECONDS,
    )
    from jax.experimental import multihost_utils

    total = multihost_utils.process_allgather(jax.numpy.ones(1)).sum()
    return jax.process_index(), jax.process_count(), int(total), "JAX %s" % jax.__version__


def by_tensorflow(gpus):
    import tensorflow as tf

    if gpus and not tf.config.list_physical_devices("GPU"):
        raise RuntimeError("TensorFlow %s sees no GPU" % tf.__version__)
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    resolver = strategy.cluster_resolver
    size = resolver.cluster_spec().num_tasks("worker") if resolver.cluster_spec() else 1
    # AutoGraph does not find the source code of a lambda, and warns.
    one = tf.function(lambda: strategy.run(lambda: tf.constant(1.0)), autograph=False)
    total = strategy.reduce(tf.distribute.ReduceOp.SUM, one(), axis=None)
    each = max(strategy.num_replicas_in_sync // size, 1)
    return resolver.task_id or 0, size, int(total) // each, "TensorFlow %s" % tf.__version__


def main(words):
    program, tasks = words[0], int(words[words.index("--tasks") + 1])
    gpus = int(words[words.index("--gpus") + 1]) if "--gpus" in words else 0
    check = {"torch": by_torch, "jax": by_jax, "tf-config": by_tensorflow}[program]
    try:
        rank, size, total, name = check(gpus)
    except ImportError as error:
        print("preflight: the world of the program is not checked: %s" % error, file=sys.stderr)
        return 0
    except Exception as error:  # each framework has its own exceptions
        print("preflight: %s: %s" % (type(error).__name__, str(error).split("\n")[0]), file=sys.stderr)
        return 1
    if size == tasks and total == tasks:
        if rank == 0:
            print("preflight: %d ranks, %s." % (size, name), file=sys.stderr)
        return 0
    alone = "every rank is alone" if size == 1 else "some ranks are missing or were started twice"
    if rank == 0:
        line = "preflight: a world of %d where %d ranks were started: %s (%s)."
        print(line % (size, tasks, alone, name), file=sys.stderr)
    return 1


if __name__ == "__main__":
    status = main(sys.argv[1:])
    sys.stderr.flush()
    # At its exit, JAX waits for the other ranks. os._exit skips this wait if a rank found a fault.
    os._exit(status) if status else sys.exit(0)
' > toolkit-peers.py || exit 1

mark preflight
# Check whether PyTorch reports the number of ranks that were started. If not, stop before the training starts.
# --foreground sends one signal, to the launcher only, because an mpirun that gets two signals does not stop its ranks.
timeout --foreground --kill-after=10 300 \
    srun --nodes=2 --ntasks=4 --ntasks-per-node=2 --kill-on-bad-exit=1 --label --mpi=none \
        singularity exec --bind /work/ada/toolkit/runs/mnist-1 \
        /work/ada/toolkit/images/tf2.15-cpu-0123456789ab.sif \
        sh /work/ada/toolkit/runs/mnist-1/toolkit-ranks.sh \
        env TOOLKIT_JOB_DIR=/work/ada/toolkit/runs/mnist-1 \
        python /work/ada/toolkit/runs/mnist-1/toolkit-peers.py torch --tasks "${SLURM_NTASKS:-4}"
status=$?
if [ "$status" -eq 124 ]; then
    echo "job: preflight: PyTorch did not start within 300 s; the job stops" >&2
elif [ "$status" -ne 0 ]; then
    echo "job: preflight failed with status $status; the job stops before the training" >&2
fi
[ "$status" -eq 0 ] || exit "$status"

mark ranks
srun --nodes=2 --ntasks=4 --ntasks-per-node=2 --kill-on-bad-exit=1 --label --mpi=none \
    singularity exec --bind /work/ada/toolkit/runs/mnist-1 \
    /work/ada/toolkit/images/tf2.15-cpu-0123456789ab.sif \
    sh /work/ada/toolkit/runs/mnist-1/toolkit-ranks.sh \
    env TOOLKIT_JOB_DIR=/work/ada/toolkit/runs/mnist-1 \
    python train.py
