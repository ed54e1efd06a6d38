#!/bin/bash
# Made by toolkit. Needs nothing but Slurm, singularity and the image: sbatch job.sh
#
# Launch mode torch: PMIx 4.2.2 in the image speaks to mpi/pmix_v5 of Slurm
#
#SBATCH --job-name=mnist
#SBATCH --nodes=2
#SBATCH --ntasks=4
#SBATCH --ntasks-per-node=2
#SBATCH --time=01:00:00
#SBATCH --output=output.log
#SBATCH --open-mode=append

set -u
# Where a job is submitted with --export=NONE its steps get nothing of this shell, PATH neither (srun(1), --export).
unset SLURM_EXPORT_ENV

# Everything that the job writes goes here.
job_dir=/work/ada/toolkit/runs/mnist-1
mkdir -p -- "$job_dir" || exit 1
cd -- "$job_dir" || exit 1

# How the job ended is left in a file, for clusters that keep no accounting. A job that Slurm starts
# again, after the failure of a node, has not ended yet.
rm -f exit-code stop-asked
leave_status() {
    local status=$?
    # A signal ends this shell while a command runs in front (those behind have an & in the list), and leaves
    # it the status of the one before. A trap for the signal would tell more, and would wait for the command.
    case "$(jobs -r)" in "" | *"&") ;; *) status=143 ;; esac
    rm -f .secret
    echo "$status" > exit-code.part && mv exit-code.part exit-code
}
trap leave_status EXIT

# The secret of ranks that speak TCP: a connection without it is refused.
rm -f .secret
(umask 077 && head -c 32 /dev/urandom | od -An -v -tx1 | tr -d ' \n' > .secret) || exit 1

command -v singularity > /dev/null || {
    echo "job: singularity is not on PATH of $(hostname); load its module or ask the centre" >&2
    exit 127
}

echo "job: $SLURM_JOB_ID, $SLURM_NTASKS ranks on $SLURM_JOB_NODELIST, mode torch"

# How the ranks find each other: each reads this file in the container, and becomes the command. The nodes are looked up
# here, as an image has no command of the scheduler. The port is free on this node, the first of the job, and differs
# from job to job.
find_peers() {
    local nodes first count job port
    nodes=$(scontrol show hostnames "$SLURM_JOB_NODELIST") job=$SLURM_JOB_ID
    [ -n "$nodes" ] || return
    count=$(wc -l <<< "$nodes") first=${nodes%%$'\n'*} nodes=${nodes//$'\n'/ }
    # Slurm knows where a node is whose name does not resolve.
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
exec "$@"
END
    } > toolkit-ranks.sh || return
}
find_peers || {
    echo "job: the nodes of the job could not be looked up" >&2
    exit 1
}

srun --nodes=2 --ntasks=4 --ntasks-per-node=2 --kill-on-bad-exit=1 --label --mpi=none \
    singularity exec --bind /work/ada/toolkit/runs/mnist-1 \
    /work/ada/toolkit/images/tf2.15-cpu-0123456789ab.sif \
    sh /work/ada/toolkit/runs/mnist-1/toolkit-ranks.sh \
    env TOOLKIT_JOB_DIR=/work/ada/toolkit/runs/mnist-1 \
    python train.py
