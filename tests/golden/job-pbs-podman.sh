#!/bin/bash
# Made by toolkit. Needs only PBS, podman and the image. Submit with: qsub job.sh
#
# NEVER RUN: toolkit has no recorded launch on a machine with PBS. Read this script before you use it.
#
# Launch mode gloo: Open MPI 4.1.4 in the image uses PMIx 4.2.2, compatible with Slurm's PMIx 5.0.7
# PBS starts this script.
#
#PBS -N mnist
#PBS -l select=2:mpiprocs=2
#PBS -l place=scatter
#PBS -l walltime=01:00:00
#PBS -o output.log
#PBS -j oe
#PBS -l filesystems=home:eagle
# shellcheck disable=SC2016

set -u

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
module use /soft/modulefiles || {
    echo "job: on $(hostname), this command failed: module" use /soft/modulefiles >&2
    exit 1
}
module load spack-pe-base/0.6.2 || {
    echo "job: on $(hostname), this command failed: module" load spack-pe-base/0.6.2 >&2
    exit 1
}
module load apptainer || {
    echo "job: on $(hostname), this command failed: module" load apptainer >&2
    exit 1
}
module load cray-mpich-abi || {
    echo "job: on $(hostname), this command failed: module" load cray-mpich-abi >&2
    exit 1
}
set -u

command -v podman > /dev/null || {
    echo "job: podman is not on PATH of $(hostname); load the module of podman or ask the centre" >&2
    exit 127
}

echo "job: ${PBS_JOBID:-?}, 4 ranks on 2 nodes, mode gloo"

# Each node stores its own images. Load this image on every node before the ranks start.
# shellcheck disable=SC2016
printf '%s' '#!/bin/sh
# Create a podman store on this node, and load an image into it: sh toolkit-podman.sh ARCHIVE NAME.
# A job script sources this file without arguments, so that its ranks use the same store.
#
# The default store is in the home folder, which nodes share. podman needs a local disk. Without
# a login session XDG_RUNTIME_DIR is also missing.
store=/tmp/toolkit-podman-$(id -u)
export XDG_RUNTIME_DIR="$store/run" CONTAINERS_STORAGE_CONF="$store/storage.conf" PODMAN_IGNORE_CGROUPSV1_WARNING=1
if [ "$#" -eq 2 ]; then
    umask 077
    if ! mkdir -p "$store" "$store/run" || ! [ -O "$store" ]; then
        echo "job: $store on $(hostname) belongs to another user" >&2
        exit 1
    fi
    # settle [WORDS...]: write the configuration of the podman store, and test it.
    settle() {
        {
            printf '"'"'[storage]\ndriver = "overlay"\nrunroot = "%s/run/containers"\n'"'"' "$store"
            printf '"'"'graphroot = "%s/images"\nrootless_storage_path = "%s/images"\n'"'"' "$store" "$store"
            [ "$#" -eq 0 ] || printf '"'"'[storage.options.overlay]\nmount_program = "%s"\n'"'"' "$1"
        } > "$CONTAINERS_STORAGE_CONF.$$" && mv "$CONTAINERS_STORAGE_CONF.$$" "$CONTAINERS_STORAGE_CONF"
        podman --cgroup-manager=cgroupfs info > /dev/null 2>&1
    }
    # If the kernel has no overlay file system for users, use fuse-overlayfs.
    [ -e "$CONTAINERS_STORAGE_CONF" ] || settle || settle "$(command -v fuse-overlayfs)" ||
        rm -f "$CONTAINERS_STORAGE_CONF"
    loaded=$(podman --cgroup-manager=cgroupfs load --quiet --input "$1") || exit
    podman --cgroup-manager=cgroupfs tag "${loaded##*: }" "$2"
fi
' > toolkit-podman.sh || exit 1
# shellcheck disable=SC1090,SC1091
. ./toolkit-podman.sh
mpiexec -n 2 --ppn 1 \
sh ./toolkit-podman.sh /work/ada/toolkit/images/tf2.15-cpu-0123456789ab.sif localhost/toolkit/mnist-1:latest || {
    echo "job: podman did not load the image on every node" >&2
    exit 1
}

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
# Check whether Gloo reports the number of ranks that were started. If not, stop before the training starts.
# --foreground sends one signal, to the launcher only, because an mpirun that gets two signals does not stop its ranks.
timeout --foreground --kill-after=10 300 \
    mpiexec -n 4 --ppn 2 \
        env ${foreign[@]+"${foreign[@]}"} \
        podman --cgroup-manager=cgroupfs run --rm --pull=never --entrypoint= --nv \
            --volume=/opt:/opt --volume=/var/run/palsd:/var/run/palsd \
            --volume=/local/scratch:/local/scratch \
            --volume=/work/ada/toolkit/runs/mnist-1:/work/ada/toolkit/runs/mnist-1 \
        localhost/toolkit/mnist-1:latest \
        env TOOLKIT_JOB_DIR=/work/ada/toolkit/runs/mnist-1 TMPDIR=/local/scratch \
            LD_LIBRARY_PATH="${CRAY_LD_LIBRARY_PATH:?}":"${LD_LIBRARY_PATH:?}":/opt/cray/pe/pals/1.2.12/lib \
            HOROVOD_CONTROLLER=gloo HOROVOD_CPU_OPERATIONS=gloo \
        python -m toolkit.trainers.gloo -- python -m toolkit.trainers.preflight --tasks "${SLURM_NTASKS:-4}"
status=$?
if [ "$status" -eq 124 ]; then
    echo "job: preflight: Gloo did not start within 300 s; the job stops" >&2
elif [ "$status" -ne 0 ]; then
    echo "job: preflight failed with status $status; the job stops before the training" >&2
fi
[ "$status" -eq 0 ] || exit "$status"

mark ranks
mpiexec -n 4 --ppn 2 \
    env ${foreign[@]+"${foreign[@]}"} \
    podman --cgroup-manager=cgroupfs run --rm --pull=never --entrypoint= --nv \
        --volume=/opt:/opt --volume=/var/run/palsd:/var/run/palsd \
        --volume=/local/scratch:/local/scratch \
        --volume=/work/ada/toolkit/runs/mnist-1:/work/ada/toolkit/runs/mnist-1 \
    localhost/toolkit/mnist-1:latest \
    env TOOLKIT_JOB_DIR=/work/ada/toolkit/runs/mnist-1 TMPDIR=/local/scratch \
        LD_LIBRARY_PATH="${CRAY_LD_LIBRARY_PATH:?}":"${LD_LIBRARY_PATH:?}":/opt/cray/pe/pals/1.2.12/lib \
        HOROVOD_CONTROLLER=gloo HOROVOD_CPU_OPERATIONS=gloo \
    python -m toolkit.trainers.gloo -- python -m toolkit.trainers.mnist \
        --data /work/ada/toolkit/data/mnist
