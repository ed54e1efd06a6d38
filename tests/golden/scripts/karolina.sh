#!/bin/bash
# Made by toolkit. Needs nothing but Slurm, singularity and the image: sbatch job.sh
#
# Launch mode srun-pmix: not predicted, as nothing was asked of Karolina; srun-pmix is usual for the MPI of the image
#
#SBATCH --job-name=mnist
#SBATCH --nodes=2
#SBATCH --ntasks=16
#SBATCH --ntasks-per-node=8
#SBATCH --cpus-per-task=16
#SBATCH --time=01:00:00
#SBATCH --partition=qgpu
#SBATCH --account=train
#SBATCH --gpus-per-node=8
#SBATCH --signal=B:USR1@120
#SBATCH --output=output.log
#SBATCH --open-mode=append

set -u
# Where a job is submitted with --export=NONE its steps get nothing of this shell, PATH neither (srun(1), --export).
unset SLURM_EXPORT_ENV

# Everything that the job writes goes here.
job_dir="${HOME:?}"/toolkit/runs/mnist-1
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

# srun of Slurm 22.05 to 23.02 does not read SLURM_CPUS_PER_TASK; this is right in every release.
export SRUN_CPUS_PER_TASK="${SLURM_CPUS_PER_TASK:-16}"

command -v singularity > /dev/null || {
    echo "job: singularity is not on PATH of $(hostname); load its module or ask the centre" >&2
    exit 127
}

echo "job: $SLURM_JOB_ID, $SLURM_NTASKS ranks on $SLURM_JOB_NODELIST, mode srun-pmix"
# What the run before could not say itself, as it was ended from outside.
if [ "${SLURM_RESTART_COUNT:-0}" -gt 0 ] && [ ! -e went-back ]; then
    echo "job: Slurm ended the run before, as a node failed or others went first, and started it again here"
fi
rm -f went-back

# Settings that modules or a login made for the MPI and the Python of the host mislead those in the image.
foreign=()
for name in \
    "${!OMPI_MCA_@}" \
    "${!PMIX_MCA_@}" \
    "${!PRTE_MCA_@}" \
    "${!UCX_@}" \
    "${!FI_@}" \
    "${!MPIR_@}" \
    "${!MPICH_@}" \
    "${!I_MPI_@}" \
    "${!MV2_@}" \
    "${!HYDRA_@}" \
    {APPTAINER,SINGULARITY}_{CLEANENV,CONTAIN,CONTAINALL,COMPAT,NO_MOUNT,NET,UNSHARE_NET,PID,UNSHARE_PID,IPC,UNSHARE_IPC,USERNS,UNSHARE_USERNS,FAKEROOT,OCI} \
    OPAL_PREFIX OPAL_LIBDIR PMIX_PREFIX PMIX_INSTALL_PREFIX PRTE_PREFIX PYTHONPATH PYTHONHOME; do
    if [ -n "${!name+set}" ]; then foreign+=(-u "$name"); fi
done

# Is the world that MPI reports the one that was started? If not, end here and not after a night.
# --foreground asks the launcher alone to end, once: an mpirun that is asked twice leaves its ranks behind.
timeout --foreground --kill-after=10 300 \
    srun --nodes=2 --ntasks=16 --ntasks-per-node=8 --kill-on-bad-exit=1 --label --mpi=pmix \
            --cpu-bind=cores \
        env ${foreign[@]+"${foreign[@]}"} \
        singularity exec --nv --bind "$job_dir" \
            --bind "${HOME:?}"/toolkit/data/mnist:"${HOME:?}"/toolkit/data/mnist:ro \
            --bind "${HOME:?}"/toolkit/images/tf2.15-cpu.sif:"${HOME:?}"/toolkit/images/tf2.15-cpu.sif:ro \
        "${HOME:?}"/toolkit/images/tf2.15-cpu.sif \
        env TOOLKIT_JOB_DIR="$job_dir" OMP_NUM_THREADS=16 TF_NUM_INTRAOP_THREADS=16 \
            TF_NUM_INTEROP_THREADS=2 \
        python -m toolkit.trainers.preflight --nodes 2 --output "$job_dir" --gpus-per-node 8 \
            --image "${HOME:?}"/toolkit/images/tf2.15-cpu.sif --tasks "${SLURM_NTASKS:-16}"
status=$?
if [ "$status" -eq 124 ]; then
    echo "job: preflight: MPI did not start within 300 s; the job is ended" >&2
elif [ "$status" -ne 0 ]; then
    echo "job: preflight failed with status $status; the job is ended before it trains" >&2
fi
[ "$status" -eq 0 ] || exit "$status"

# Slurm asks the job to stop: by USR1 120 s before the time limit, by SIGTERM where others go first. The ranks look
# for the file stop-asked; when it is there they write a checkpoint and end with status 75.
asked=0
# shellcheck disable=SC2317
ask_to_stop() {
    asked=$((asked + 1))
    echo "job: asked to stop; the ranks are told to write a checkpoint" >&2
    [ -e stop-asked ] || : > stop-asked
}
trap ask_to_stop USR1 TERM

job_id=$SLURM_JOB_ID

# Slurm's word for how the job is; other than RUNNING where it was cancelled or is past its limit.
# A controller that is started anew is waited for.
job_state() {
    local _
    for _ in {1..30}; do
        squeue --noheader --jobs="$job_id" --format=%T 2> /dev/null && return
        sleep 10
    done
}

# Where a node dies, ranks may fail long before Slurm misses it. Does each one still start something?
nodes_answer() {
    SLURM_OVERLAP=1 timeout --kill-after=10 60 srun --mpi=none --nodes=2 \
        --ntasks=2 --ntasks-per-node=1 true > /dev/null 2>&1
}

lost=
# In the background, as a shell hears of a signal only when no command stands in its way.
srun --nodes=2 --ntasks=16 --ntasks-per-node=8 --kill-on-bad-exit=1 --label --mpi=pmix \
        --cpu-bind=cores \
    env ${foreign[@]+"${foreign[@]}"} \
    singularity exec --nv --bind "$job_dir" \
        --bind "${HOME:?}"/toolkit/data/mnist:"${HOME:?}"/toolkit/data/mnist:ro \
    "${HOME:?}"/toolkit/images/tf2.15-cpu.sif \
    env TOOLKIT_JOB_DIR="$job_dir" OMP_NUM_THREADS=16 TF_NUM_INTRAOP_THREADS=16 \
        TF_NUM_INTEROP_THREADS=2 \
    python -m toolkit.trainers.mnist --data "${HOME:?}"/toolkit/data/mnist --output "$job_dir" \
        --strategy horovod &
pid=$!
status=
until [ -n "$status" ]; do
    heard=$asked
    wait "$pid"
    status=$?
    # A signal ends the waiting and not the ranks.
    [ "$heard" -eq "$asked" ] || status=
done
# The first rank to end lets srun end those that are a moment behind, and tell of that: the checkpoint counts.
if [ "$status" -gt 128 ] && [ -e stop-asked ] &&
    [ -n "$(find checkpoints -newer stop-asked -type f -print -quit 2> /dev/null)" ]; then
    status=75
fi
if [ "$status" -ne 0 ] && [ "$status" -ne 75 ] && [ "$(job_state)" = RUNNING ] && ! nodes_answer; then
    lost="not every node of $SLURM_JOB_NODELIST answers any more"
fi
rm -f stop-asked

if [ "$status" -eq 75 ] || [ -n "$lost" ]; then
    why=${lost:-stopped with a checkpoint}
    echo "job: $why; to go on, submit the script once more: sbatch $job_dir/job.sh" >&2
fi
[ "$status" -eq 0 ] || exit "$status"
