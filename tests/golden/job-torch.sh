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
# After sbatch --export=NONE, srun would pass no variable of this shell to its steps, not even PATH (srun(1), --export).
unset SLURM_EXPORT_ENV

# toolkit writes the files of this job to this folder.
job_dir=/work/ada/toolkit/runs/mnist-1
mkdir -p -- "$job_dir" || exit 1
cd -- "$job_dir" || exit 1

# Write the exit status to a file, because not every cluster keeps accounting records. Slurm starts a job
# again after a node failure: remove what the first start wrote.
rm -f exit-code stop-asked
leave_status() {
    local status=$?
    # A signal that ends this shell during a foreground command leaves the status of the command before. `jobs -r` lists
    # such a command without an &. A trap for the signal would run only after the command.
    case "$(jobs -r)" in "" | *"&") ;; *) status=143 ;; esac
    rm -f .secret
    echo "$status" > exit-code.part && mv exit-code.part exit-code
}
trap leave_status EXIT

# Ranks that communicate over TCP share this secret: they refuse a connection without it.
rm -f .secret
(umask 077 && head -c 32 /dev/urandom | od -An -v -tx1 | tr -d ' \n' > .secret) || exit 1

command -v singularity > /dev/null || {
    echo "job: singularity is not on PATH of $(hostname); load its module or ask the centre" >&2
    exit 127
}

echo "job: $SLURM_JOB_ID, $SLURM_NTASKS ranks on $SLURM_JOB_NODELIST, mode torch"

# Each rank reads this file in the container, then executes the command. The file says where rank 0 is. This script looks up
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
exec "$@"
END
    } > toolkit-ranks.sh || return
}
find_peers || {
    echo "job: the addresses of the job's nodes could not be resolved" >&2
    exit 1
}

srun --nodes=2 --ntasks=4 --ntasks-per-node=2 --kill-on-bad-exit=1 --label --mpi=none \
    singularity exec --bind /work/ada/toolkit/runs/mnist-1 \
    /work/ada/toolkit/images/tf2.15-cpu-0123456789ab.sif \
    sh /work/ada/toolkit/runs/mnist-1/toolkit-ranks.sh \
    env TOOLKIT_JOB_DIR=/work/ada/toolkit/runs/mnist-1 \
    python train.py
