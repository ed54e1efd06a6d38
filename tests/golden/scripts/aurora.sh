#!/bin/bash
# Made by toolkit. Needs only PBS, apptainer and the image. Submit with: qsub job.sh
#
# NEVER RUN: toolkit has no recorded launch on a machine with PBS. Read this script before you use it.
#
# Launch mode bind: not predicted, because Aurora was not contacted; the site profile chooses bind
#
#PBS -N mnist
#PBS -l select=2:ncpus=96:mpiprocs=6:ompthreads=8
#PBS -l place=scatter
#PBS -l walltime=00:30:00
#PBS -q debug
#PBS -A train
#PBS -o output.log
#PBS -j oe
#PBS -l filesystems=home:flare

set -u

# toolkit writes the files of this job to this folder.
job_dir="${HOME:?}"/toolkit/runs/mnist-1
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
module load apptainer || {
    echo "job: on $(hostname), this command failed: module" load apptainer >&2
    exit 1
}
set -u

command -v apptainer > /dev/null || {
    echo "job: apptainer is not on PATH of $(hostname); load the module of apptainer or ask the centre" >&2
    exit 127
}

echo "job: ${PBS_JOBID:-?}, 12 ranks on 2 nodes, mode bind"

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
    case "$name" in FI_CXI_* | FI_EFA_* | FI_OPX_* | FI_PSM2_* | FI_VERBS_* | UCX_DC_* | UCX_IB_* | UCX_RC_* | UCX_UD_* | MPICH_*) continue ;; esac
    if [ -n "${!name+set}" ]; then foreign+=(-u "$name"); fi
done

mark preflight
# Check whether MPI reports the number of ranks that were started. If not, stop before the training starts.
# --foreground sends one signal, to the launcher only, because an mpirun that gets two signals does not stop its ranks.
timeout --foreground --kill-after=10 300 \
    mpiexec -n 12 --ppn 6 --depth 16 --cpu-bind depth \
        env ${foreign[@]+"${foreign[@]}"} \
        apptainer exec --nv --bind /usr/lib64/libpmix.so.2 --bind /var/run/palsd --bind "$job_dir" \
            --bind "${HOME:?}"/toolkit/data/mnist:"${HOME:?}"/toolkit/data/mnist:ro \
            --bind "${HOME:?}"/toolkit/images/tf2.15-cpu.sif:"${HOME:?}"/toolkit/images/tf2.15-cpu.sif:ro \
        "${HOME:?}"/toolkit/images/tf2.15-cpu.sif \
        env TOOLKIT_JOB_DIR="$job_dir" OMP_NUM_THREADS=8 TF_NUM_INTRAOP_THREADS=8 \
            TF_NUM_INTEROP_THREADS=2 ZE_FLAT_DEVICE_HIERARCHY=FLAT \
        python -m toolkit.trainers.preflight --nodes 2 --output "$job_dir" --gpus-per-node 6 \
            --image "${HOME:?}"/toolkit/images/tf2.15-cpu.sif --tasks "${SLURM_NTASKS:-12}"
status=$?
if [ "$status" -eq 124 ]; then
    echo "job: preflight: MPI did not start within 300 s; the job stops" >&2
elif [ "$status" -ne 0 ]; then
    echo "job: preflight failed with status $status; the job stops before the training" >&2
fi
[ "$status" -eq 0 ] || exit "$status"

mark ranks
mpiexec -n 12 --ppn 6 --depth 16 --cpu-bind depth \
    env ${foreign[@]+"${foreign[@]}"} \
    apptainer exec --nv --bind /usr/lib64/libpmix.so.2 --bind /var/run/palsd --bind "$job_dir" \
        --bind "${HOME:?}"/toolkit/data/mnist:"${HOME:?}"/toolkit/data/mnist:ro \
    "${HOME:?}"/toolkit/images/tf2.15-cpu.sif \
    env TOOLKIT_JOB_DIR="$job_dir" OMP_NUM_THREADS=8 TF_NUM_INTRAOP_THREADS=8 \
        TF_NUM_INTEROP_THREADS=2 ZE_FLAT_DEVICE_HIERARCHY=FLAT \
    python -m toolkit.trainers.mnist --data "${HOME:?}"/toolkit/data/mnist --output "$job_dir" \
        --strategy horovod
