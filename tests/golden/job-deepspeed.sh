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
# toolkit puts its options first, so an option in your command overrides them.
case "$1" in *deepspeed | *deepspeed-launch) shift ;;
*) while [ "$1" != deepspeed.launcher.runner ]; do shift; done; shift ;; esac
set -- --node_rank "$node_rank" --master_addr "$first" --master_port "$port" "$@"
set -- deepspeed --hostfile "${0%/*}/hostfile" --no_ssh "$@"
[ "$rank" != 0 ] || date "+container %s.%N" >> "${0%/*}/start-times"
exec "$@"
END
    } > toolkit-ranks.sh || return
    # shellcheck disable=SC2086 # printf writes one line for each node
    printf '%s slots=2\n' $nodes > hostfile
}
find_peers || {
    echo "job: the addresses of the job's nodes could not be resolved" >&2
    exit 1
}

mark ranks
srun --nodes=2 --ntasks=2 --ntasks-per-node=1 --kill-on-bad-exit=1 --label \
        --cpus-per-task=2 --mpi=none \
    singularity exec --bind /work/ada/toolkit/runs/mnist-1 \
    /work/ada/toolkit/images/tf2.15-cpu-0123456789ab.sif \
    env TOOLKIT_JOB_DIR=/work/ada/toolkit/runs/mnist-1 \
    sh /work/ada/toolkit/runs/mnist-1/toolkit-ranks.sh deepspeed train.py
