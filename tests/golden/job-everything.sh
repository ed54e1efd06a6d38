#!/bin/bash
# Made by toolkit. Needs only Slurm, singularity and the image. Submit with: sbatch job.sh
#
# Launch mode srun-pmix: Open MPI 4.1.4 in the image uses PMIx 4.2.2, compatible with Slurm's PMIx 5.0.7
#
#SBATCH --job-name=mnist
#SBATCH --nodes=2
#SBATCH --ntasks=8
#SBATCH --ntasks-per-node=4
#SBATCH --cpus-per-task=12
#SBATCH --mem=180G
#SBATCH --tmp=200G
#SBATCH --time=1-00:00:00
#SBATCH --partition=gpus,develgpus
#SBATCH --account=train
#SBATCH --wckey=lab
#SBATCH --qos=high
#SBATCH --constraint=ib&mem192
#SBATCH --reservation=course
#SBATCH --nodelist=node[1-4]
#SBATCH --exclude=node3
#SBATCH --licenses=scratch:1
#SBATCH --switches=1@02:00:00
#SBATCH --array=0-7%2
#SBATCH --dependency=afterok:12:13
#SBATCH --begin=now+2hours
#SBATCH --mail-type=END,FAIL
#SBATCH --mail-user=ada@example.org
#SBATCH --gres=gpu:v100:4
#SBATCH --exclusive
#SBATCH --requeue
#SBATCH --signal=B:USR1@300
#SBATCH --output=output-%a.log
#SBATCH --error=error-%a.log
#SBATCH --open-mode=append
#SBATCH --comment='a b'
#SBATCH --switches=1

set -u
# After sbatch --export=NONE, srun would pass no variable of this shell to its steps, not even PATH (srun(1), --export).
unset SLURM_EXPORT_ENV

# toolkit writes the files of this job to this folder.
job_dir=/work/ada/toolkit/runs/mnist-1
job_dir="$job_dir/$SLURM_ARRAY_TASK_ID"
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
    # Slurm may leave background processes running after this script.
    [ -z "${gpu_watch:-}" ] || kill "$gpu_watch" 2> /dev/null
    rm -f .secret
    leave_size
    echo "$status" > exit-code.part && mv exit-code.part exit-code
}
trap leave_status EXIT

# Ranks that communicate over TCP share this secret, and refuse connections without the secret.
rm -f .secret
(umask 077 && head -c 32 /dev/urandom | od -An -v -tx1 | tr -d ' \n' > .secret) || exit 1

# srun of Slurm 22.05 to 23.02 ignores SLURM_CPUS_PER_TASK; every release reads this variable.
export SRUN_CPUS_PER_TASK="${SLURM_CPUS_PER_TASK:-12}"

# A batch shell may lack the command `module`. The file that defines the command differs between centres.
set +u
if ! command -v module > /dev/null; then
    for file in "${LMOD_PKG:-}/init/bash" "${MODULESHOME:-}/init/bash" /etc/profile.d/lmod.sh \
        /etc/profile.d/z00_lmod.sh /etc/profile.d/modules.sh /usr/share/lmod/lmod/init/bash \
        /usr/share/Modules/init/bash /opt/modules/default/init/bash /opt/cray/pe/modules/default/init/bash; do
        if [ -r "$file" ]; then
            # shellcheck disable=SC1090
            . "$file"
            break
        fi
    done
fi
module load GCC/12.3.0 || {
    echo "job: on $(hostname), this command failed: module" load GCC/12.3.0 >&2
    exit 1
}
module swap cray-mpich cray-mpich-abi || {
    echo "job: on $(hostname), this command failed: module" swap cray-mpich cray-mpich-abi >&2
    exit 1
}
set -u

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

# Unset variables that modules and login files set for the host's MPI and Python, because the image has its own MPI and Python.
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
    # Keep variables that the network driver in the container needs, and variables of the site profile.
    case "$name" in FI_CXI_* | FI_EFA_* | FI_OPX_* | FI_PSM2_* | FI_VERBS_* | UCX_DC_* | UCX_IB_* | UCX_RC_* | UCX_UD_*) continue ;; esac
    if [ -n "${!name+set}" ]; then foreign+=(-u "$name"); fi
done

mark preflight
# Check whether MPI reports the number of ranks that were started. If not, stop before the training starts.
# --foreground sends one signal, to the launcher only, because an mpirun that gets two signals does not stop its ranks.
timeout --foreground --kill-after=10 300 \
    srun --nodes=2 --ntasks=8 --ntasks-per-node=4 --kill-on-bad-exit=1 --label --mpi=pmix \
            --cpu-bind=sockets --gpu-bind=closest \
        env ${foreign[@]+"${foreign[@]}"} -u OMPI_MCA_btl \
        singularity exec --nv --pwd /work/ada --bind "$job_dir" \
        /work/ada/toolkit/images/tf2.15-cpu-0123456789ab.sif \
        env TOOLKIT_JOB_DIR="$job_dir" OMP_NUM_THREADS=12 TF_NUM_INTRAOP_THREADS=12 \
            TF_NUM_INTEROP_THREADS=2 'A=1 2' \
        python -m toolkit.trainers.preflight --tasks "${SLURM_NTASKS:-8}"
status=$?
if [ "$status" -eq 124 ]; then
    echo "job: preflight: MPI did not start within 300 s; the job stops" >&2
elif [ "$status" -ne 0 ]; then
    echo "job: preflight failed with status $status; the job stops before the training" >&2
fi
[ "$status" -eq 0 ] || exit "$status"

# Record the utilisation of this node's GPUs every 30 s, for toolkit report. leave_status ends nvidia-smi.
if command -v nvidia-smi > /dev/null 2>&1; then
    nvidia-smi --query-gpu=timestamp,index,utilization.gpu,memory.used --format=csv,noheader,nounits \
        --loop=30 ${CUDA_VISIBLE_DEVICES:+"--id=$CUDA_VISIBLE_DEVICES"} > gpu-use.csv 2> /dev/null &
    gpu_watch=$!
fi

# Slurm asks the job to stop with a signal: USR1 300 s before the time limit, SIGTERM for preemption. The ranks look
# for the file stop-asked. When the file exists, the ranks write a checkpoint and exit with status 75.
asked=0
# shellcheck disable=SC2317
ask_to_stop() {
    asked=$((asked + 1))
    echo "job: stop requested; the ranks write a checkpoint" >&2
    [ -e stop-asked ] || : > stop-asked
}
trap ask_to_stop USR1 TERM

# The last task of an array has the job id of the whole array as its SLURM_JOB_ID.
job_id="${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID"

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
    SLURM_OVERLAP=1 timeout --kill-after=10 60 srun --mpi=none --nodes=2 \
        --ntasks=2 --ntasks-per-node=1 true > /dev/null 2>&1
}

lost=
mark ranks
# Run in the background: bash handles a signal only after a foreground command ends.
srun --nodes=2 --ntasks=8 --ntasks-per-node=4 --kill-on-bad-exit=1 --label --mpi=pmix \
        --cpu-bind=sockets --gpu-bind=closest \
    env ${foreign[@]+"${foreign[@]}"} -u OMPI_MCA_btl \
    singularity exec --nv --pwd /work/ada --bind "$job_dir" \
    /work/ada/toolkit/images/tf2.15-cpu-0123456789ab.sif \
    env TOOLKIT_JOB_DIR="$job_dir" OMP_NUM_THREADS=12 TF_NUM_INTRAOP_THREADS=12 \
        TF_NUM_INTEROP_THREADS=2 'A=1 2' \
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
if [ "$status" -ne 0 ] && [ "$status" -ne 75 ] && [ "$(job_state)" = RUNNING ] && ! nodes_answer; then
    lost="a node of $SLURM_JOB_NODELIST does not answer"
fi
rm -f stop-asked

if [ "$status" -eq 75 ] || [ -n "$lost" ]; then
    why=${lost:-stopped with a checkpoint}
    restarts=$(cat restarts 2> /dev/null || echo 0)
    if [ "$restarts" -ge 5 ]; then
        echo "job: $why; the job resumed 5 times, which is the limit" >&2
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
        next=$(sbatch --parsable --dependency="afterany:$job_id" --begin=now \
            --array="$SLURM_ARRAY_TASK_ID" --chdir="${job_dir%/*}" job.sh) &&
            echo "job: $why; job ${next%%;*} resumes from the last checkpoint" >&2
    fi
fi
[ "$status" -eq 0 ] || exit "$status"
