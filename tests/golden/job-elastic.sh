#!/bin/bash
# Made by toolkit. Needs only Slurm, singularity and the image. Submit with: sbatch job.sh
#
# Launch mode srun-pmix: Open MPI 4.1.4 in the image uses PMIx 4.2.2, compatible with Slurm's PMIx 5.0.7
#
#SBATCH --job-name=mnist
#SBATCH --nodes=2-4
#SBATCH --ntasks-per-node=2
#SBATCH --time=01:00:00
#SBATCH --requeue
#SBATCH --no-kill
#SBATCH --signal=B:USR1@120
#SBATCH --output=output.log
#SBATCH --open-mode=append

set -u
# After sbatch --export=NONE, srun would pass no variable of this shell to its steps, not even PATH (srun(1), --export).
unset SLURM_EXPORT_ENV

# toolkit writes the files of this job to this folder.
job_dir=/work/ada/toolkit/runs/mnist-1
mkdir -p -- "$job_dir" || exit 1
[ -e "$job_dir/job.sh" ] || cp -- "$0" "$job_dir/job.sh"
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

echo "job: $SLURM_JOB_ID, $SLURM_NTASKS ranks on $SLURM_JOB_NODELIST, mode srun-pmix"
# The previous run was killed before it could print this message.
if [ "${SLURM_RESTART_COUNT:-0}" -gt 0 ] && [ ! -e went-back ]; then
    echo "job: Slurm ended the previous run (node failure or preemption) and restarted the job here"
fi
rm -f went-back

# Count the nodes that the job has now. With --no-kill, Slurm removes a dead node from the job, and srun must start ranks
# on the remaining nodes only. The variables of sbatch still describe the larger job, so unset them.
look_at_nodes() {
    local count names
    read -r count names < <(squeue --noheader --jobs="$job_id" --format="%D %N")
    [[ "${count:-}" =~ ^[0-9]+$ ]] || return 0 # Slurm does not answer: keep the last known nodes
    nodes=$count ranks=$((count * 2)) node_list=$names
    unset SLURM_NPROCS SLURM_TASKS_PER_NODE SLURM_JOB_CPUS_PER_NODE
    export SLURM_NTASKS=$ranks SLURM_NNODES=$nodes SLURM_JOB_NUM_NODES=$nodes
    export SLURM_JOB_NODELIST=$names SLURM_NODELIST=$names
}
nodes=$SLURM_JOB_NUM_NODES ranks=$((SLURM_JOB_NUM_NODES * 2)) node_list=$SLURM_JOB_NODELIST
[ "$nodes" -eq 4 ] || echo "job: starts with $nodes of 4 nodes, because no more are free"

mark preflight
# Check whether MPI reports the number of ranks that were started. If not, stop before the training starts.
# --foreground sends one signal, to the launcher only, because an mpirun that gets two signals does not stop its ranks.
timeout --foreground --kill-after=10 300 \
    srun --nodes="$nodes" --ntasks="$ranks" --ntasks-per-node=2 --nodelist="$node_list" \
            --kill-on-bad-exit=1 --label --mpi=pmix \
        env -u OMPI_MCA_btl \
        singularity exec --bind /work/ada/toolkit/runs/mnist-1 \
        /work/ada/toolkit/images/tf2.15-cpu-0123456789ab.sif \
        env TOOLKIT_JOB_DIR=/work/ada/toolkit/runs/mnist-1 'A=1 2' \
        python -m toolkit.trainers.preflight --tasks "${SLURM_NTASKS:-8}"
status=$?
if [ "$status" -eq 124 ]; then
    echo "job: preflight: MPI did not start within 300 s; the job stops" >&2
elif [ "$status" -ne 0 ]; then
    echo "job: preflight failed with status $status; the job stops before the training" >&2
fi
[ "$status" -eq 0 ] || exit "$status"

# Slurm asks the job to stop with a signal: USR1 120 s before the time limit, SIGTERM for preemption. The ranks look
# for the file stop-asked. When the file exists, the ranks write a checkpoint and exit with status 75.
asked=0
# shellcheck disable=SC2317
ask_to_stop() {
    asked=$((asked + 1))
    echo "job: stop requested; the ranks write a checkpoint" >&2
    [ -e stop-asked ] || : > stop-asked
}
trap ask_to_stop USR1 TERM

job_id=$SLURM_JOB_ID

# Print the job's state in Slurm. After a cancellation or the time limit the state is not RUNNING.
# Retry while the Slurm controller restarts.
job_state() {
    local _
    for _ in {1..30}; do
        squeue --noheader --jobs="$job_id" --format=%T 2> /dev/null && return
        sleep 10
    done
}

# The ranks on a dead node fail long before Slurm notices the dead node. Test whether every node still starts a command.
nodes_answer() {
    SLURM_OVERLAP=1 timeout --kill-after=10 60 srun --mpi=none --nodes="$nodes" \
        --ntasks="$nodes" --ntasks-per-node=1 true > /dev/null 2>&1
}

lost=
while :; do
    mark ranks
    # Run in the background: bash handles a signal only after a foreground command ends.
    srun --nodes="$nodes" --ntasks="$ranks" --ntasks-per-node=2 --nodelist="$node_list" \
            --kill-on-bad-exit=1 --label --mpi=pmix \
        env -u OMPI_MCA_btl \
        singularity exec --bind /work/ada/toolkit/runs/mnist-1 \
        /work/ada/toolkit/images/tf2.15-cpu-0123456789ab.sif \
        env TOOLKIT_JOB_DIR=/work/ada/toolkit/runs/mnist-1 'A=1 2' \
        python -m toolkit.trainers.mnist --data /work/ada/toolkit/data/mnist &
    pid=$!
    status=
    until [ -n "$status" ]; do
        heard=$asked
        wait "$pid"
        status=$?
        # A signal ends `wait`, but the ranks continue.
        [ "$heard" -eq "$asked" ] || status=
    done
    # When the first rank exits, srun may kill the other ranks and report a signal. If a checkpoint exists, the stop succeeded.
    if [ "$status" -gt 128 ] && [ -e stop-asked ] &&
        [ -n "$(find checkpoints -newer stop-asked -type f -print -quit 2> /dev/null)" ]; then
        status=75
    fi

    # If the ranks failed because a node died, start them on the remaining nodes from the last checkpoint.
    if [ "$status" -eq 0 ] || [ "$status" -eq 75 ] || [ "$(job_state)" != RUNNING ]; then break; fi
    before=$nodes had=$node_list
    look_at_nodes
    if [ "$nodes" -eq "$before" ]; then
        if nodes_answer; then break; fi
        echo "job: a node of $had does not answer; waiting until Slurm removes the node from the job" >&2
        until [ "$nodes" -lt "$before" ] || nodes_answer; do
            sleep 5
            look_at_nodes
        done
    fi
    if [ "$nodes" -lt 2 ]; then
        lost="$node_list of $had remains, but the job needs 2 nodes"
        break
    fi
    echo "job: $node_list of $had remains; $ranks ranks start on these nodes and resume from the last checkpoint" >&2
    [ -e restarts ] || echo 0 > restarts
done
rm -f stop-asked

if [ "$status" -eq 75 ] || [ -n "$lost" ]; then
    why=${lost:-stopped with a checkpoint}
    restarts=$(cat restarts 2> /dev/null || echo 0)
    if [ "$restarts" -ge 100 ]; then
        echo "job: $why; the job resumed 100 times, which is the limit" >&2
        rm -f restarts
    elif [ "$(job_state)" = RUNNING ]; then
        echo $((restarts + 1)) > restarts
        # The job is in the queue again and has not ended: write no exit status. Slurm ends this script.
        trap - EXIT USR1 TERM
        : > went-back
        if scontrol requeue "$job_id"; then
            echo "job: $why; the job resumes when Slurm restarts the job" >&2
            sleep 300
        fi
        echo "job: this cluster does not requeue jobs; submitting another job" >&2
        rm -f went-back
        trap leave_status EXIT
        next=$(sbatch --parsable --dependency="afterany:$job_id" \
            job.sh) &&
            echo "job: $why; job ${next%%;*} resumes from the last checkpoint" >&2
    fi
fi
[ "$status" -eq 0 ] || exit "$status"
