#!/bin/bash
# Made by toolkit. Needs nothing but Slurm, singularity and the image: sbatch job.sh
#
# Launch mode gloo: PMIx 4.2.2 in the image speaks to mpi/pmix_v5 of Slurm
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

echo "job: $SLURM_JOB_ID, $SLURM_NTASKS ranks on $SLURM_JOB_NODELIST, mode gloo"

# Is the world that Gloo reports the one that was started? If not, end here and not after a night.
# --foreground asks the launcher alone to end, once: an mpirun that is asked twice leaves its ranks behind.
timeout --foreground --kill-after=10 300 \
    srun --nodes=2 --ntasks=4 --ntasks-per-node=2 --kill-on-bad-exit=1 --label --mpi=none \
        singularity exec --bind /work/ada/toolkit/runs/mnist-1 \
        /work/ada/toolkit/images/tf2.15-cpu-0123456789ab.sif \
        env TOOLKIT_JOB_DIR=/work/ada/toolkit/runs/mnist-1 HOROVOD_CONTROLLER=gloo \
            HOROVOD_CPU_OPERATIONS=gloo \
        python -m toolkit.trainers.gloo -- python -m toolkit.trainers.preflight --tasks "${SLURM_NTASKS:-4}"
status=$?
if [ "$status" -eq 124 ]; then
    echo "job: preflight: Gloo did not start within 300 s; the job is ended" >&2
elif [ "$status" -ne 0 ]; then
    echo "job: preflight failed with status $status; the job is ended before it trains" >&2
fi
[ "$status" -eq 0 ] || exit "$status"

srun --nodes=2 --ntasks=4 --ntasks-per-node=2 --kill-on-bad-exit=1 --label --mpi=none \
    singularity exec --bind /work/ada/toolkit/runs/mnist-1 \
    /work/ada/toolkit/images/tf2.15-cpu-0123456789ab.sif \
    env TOOLKIT_JOB_DIR=/work/ada/toolkit/runs/mnist-1 HOROVOD_CONTROLLER=gloo \
        HOROVOD_CPU_OPERATIONS=gloo \
    python -m toolkit.trainers.gloo -- python -m toolkit.trainers.mnist \
        --data /work/ada/toolkit/data/mnist
