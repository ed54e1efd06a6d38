#!/bin/bash
# Made by toolkit 0.3.0. Runs on this machine without Slurm; needs only singularity and the image. Start with: bash job.sh
#
# Launch mode mpirun-container: the launcher in the image starts them

set -u
cd -- "$(dirname -- "${BASH_SOURCE[0]}")" || exit 1

# Record the time at which each part of the start begins, for `toolkit bench start`.
rm -f start-times
mark() { echo "$1 ${EPOCHREALTIME:-$(date +%s)}" >> start-times; }
# Record the number of bytes of output that this node wrote, so that a reader on another node can wait for all bytes.
leave_size() { echo "output $(stat -Lc %s "/proc/$$/fd/1" 2> /dev/null)" >> start-times; }
mark script
# Write the exit status to a file, as the script for Slurm does.
rm -f exit-code stop-asked
leave_status() {
    local status=$?
    leave_size
    echo "$status" > exit-code.part && mv exit-code.part exit-code
    rm -f .secret
    rm -f process
}
trap leave_status EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# `toolkit jobs cancel` reads the process id, and its start time in case Linux reuses the id.
if read -r stat < "/proc/$$/stat" && read -r boot < /proc/sys/kernel/random/boot_id; then
    read -ra fields <<< "${stat##*) }"
    echo "$$ ${fields[19]} $boot" > process
fi 2> /dev/null

command -v singularity > /dev/null || {
    echo "job: singularity is not on PATH of $(hostname); load the module of singularity or ask the administrator" >&2
    exit 127
}

# Remove the variables of a Slurm allocation or step that this shell may belong to.
unset "${!SLURM_@}" "${!PMIX_@}" "${!PMI_@}"
export TOOLKIT_JOB_DIR="$PWD"

# Ranks that communicate over TCP share this secret, and refuse connections without the secret.
rm -f .secret
(umask 077 && head -c 32 /dev/urandom | od -An -v -tx1 | tr -d ' \n' > .secret) || exit 1

echo "job: $$, 2 ranks on $(hostname), mode mpirun-container"

# By default, Open MPI binds each rank to one core, and refuses to run more ranks than cores or to run as root.
export OMPI_MCA_hwloc_base_binding_policy=none OMPI_MCA_rmaps_base_oversubscribe=1
export PRTE_MCA_hwloc_default_binding_policy=none PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe
if [ "$(id -u)" -eq 0 ]; then
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    export PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1
fi

# start WORDS: run WORDS in the image, once for each rank.
start() {
    singularity exec --pid --bind /work/ada/toolkit/runs/mnist-1 \
        /work/ada/toolkit/images/tf2.15-cpu-0123456789ab.sif \
        mpirun -n 2 \
        env TOOLKIT_JOB_DIR=/work/ada/toolkit/runs/mnist-1 "$@"
}

# This check runs in each rank: it initializes the program's MPI and reads the world size.
# shellcheck disable=SC2016
printf '%s' '#!/bin/sh
# Check the world size of the MPI library that the program loads. Every rank runs this in the image before the program:
#
#     sh toolkit-preflight.sh [--library FILE] [--python FILE] [--mpi4py yes] [--speaks pmi1,pmix] [--path DIRS]
#                             [--together N] --tasks N
#
# Python in the image initializes MPI and reads the world size. Without Python, the script checks whether the variables of
# the launcher offer an interface that the MPI library supports. Exit status 1: the ranks do not form one world.
# --together N: the N ranks of a node share one container (`apptainer exec --sharens`), so none may end before all started.
library='"'"''"'"' python='"'"''"'"' mpi4py='"'"''"'"' speaks='"'"''"'"' path='"'"''"'"' together=1 tasks=1
while [ $# -gt 1 ]; do
    case $1 in
        --library) library=$2 ;;
        --python) python=$2 ;;
        --mpi4py) mpi4py=$2 ;;
        --speaks) speaks=$2 ;;
        --path) path=$2 ;;
        --together) together=$2 ;;
        --tasks) tasks=$2 ;;
    esac
    shift 2
done
[ -z "$path" ] || { LD_LIBRARY_PATH=$path && export LD_LIBRARY_PATH; }
rank=${PMIX_RANK:-${PMI_RANK:-${SLURM_PROCID:-0}}}

# say TEXT: print TEXT once for each job, by the rank that the launcher calls 0.
say() {
    [ "$rank" != 0 ] || echo "preflight: $*" >&2
}

# fail: rank 0 exits first, because the launcher ends all ranks after the first exit.
fail() {
    [ "$rank" = 0 ] || sleep 2
    exit 1
}

served() {
    case ,$speaks, in *,pmix,*) [ -z "${PMIX_RANK:-}" ] || [ -z "${PMIX_NAMESPACE:-}" ] || return 0 ;; esac
    case ,$speaks, in *,pmi[12],*) [ -z "${PMI_FD:-}${PMI_PORT:-}" ] || [ "${PMI_SIZE:-}" != "$tasks" ] || return 0 ;; esac
    return 1
}

# meet: wait until all ranks of this node have started, at most 30 s. Each rank adds a file to a folder of the node; the
# rank that is last to see all files removes the folder.
meet() {
    [ "$together" -gt 1 ] || return 0
    folder=$0-$(uname -n) turns=0
    mkdir -p "$folder" && : > "$folder/$rank" || return 0
    until set -- "$folder"/[0-9]* && [ $# -ge "$together" ] || [ "$turns" -ge 300 ]; do
        sleep 0.1
        turns=$((turns + 1))
    done
    : > "$folder/met-$rank"
    set -- "$folder"/met-*
    [ $# -lt "$together" ] || rm -rf "$folder"
} 2> /dev/null

by_variables() {
    meet
    if [ "$tasks" -le 1 ] || [ -z "$speaks" ]; then
        say "the world of the program'"'"'s MPI is not checked: the image has no Python that can start this MPI."
    elif served; then
        say "the launcher serves an interface that the program'"'"'s MPI speaks ($speaks); sending messages is not checked."
    else
        say "the launcher serves no interface that the program'"'"'s MPI speaks ($speaks): each rank would be a world of one."
        fail
    fi
    exit 0
}

for one in "$python" python3 python /usr/bin/python3; do
    found=$(command -v "$one" 2> /dev/null) && [ -n "$found" ] && break
    found='"'"''"'"'
done
if [ -z "$found" ] || [ -z "$library$mpi4py" ]; then by_variables; fi
"$found" - "$library" "$mpi4py" "$tasks" "$rank" << '"'"'END'"'"'
import os
import sys

try:
    import ctypes
except ImportError:  # a minimal Python
    sys.exit(64)

library, mpi4py, tasks, rank = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]


def by_mpi4py():
    from mpi4py import MPI

    MPI.COMM_WORLD.Barrier()
    return MPI.COMM_WORLD.Get_size(), MPI.Get_library_version()


def world(found):
    """Return MPI_COMM_WORLD: an address in Open MPI, a number in the ABIs of MPICH and of MPI 5."""
    if "mpi_abi" in os.path.basename(library):
        return ctypes.c_void_p(0x101)
    try:
        return ctypes.c_void_p(ctypes.addressof(ctypes.c_char.in_dll(found, "ompi_mpi_comm_world")))
    except ValueError:
        return ctypes.c_int(0x44000000)


def by_library():
    found = ctypes.CDLL(library, ctypes.RTLD_GLOBAL)
    found.MPI_Init(None, None)
    size, length, text = ctypes.c_int(), ctypes.c_int(), ctypes.create_string_buffer(16384)
    found.MPI_Barrier(world(found))
    found.MPI_Comm_size(world(found), ctypes.byref(size))
    found.MPI_Get_library_version(text, ctypes.byref(length))
    found.MPI_Finalize()
    return size.value, text.value.decode("utf-8", "replace")


try:
    size, version = by_mpi4py() if mpi4py else by_library()
except (ImportError, OSError, AttributeError) as error:
    sys.stderr.write("preflight: %s\n" % error if rank == "0" else "")
    sys.exit(64)
name = " ".join(version.strip("\0\n ").split(",")[0].split("\n")[0].split())
if size == tasks:
    sys.stderr.write("preflight: %d ranks, %s.\n" % (size, name) if rank == "0" else "")
    sys.exit(0)
alone = "every rank is alone" if size == 1 else "some ranks are missing or were started twice"
if rank == "0":
    line = "preflight: MPI reports a world of %d where %d tasks were started: %s (%s).\n"
    sys.stderr.write(line % (size, tasks, alone, name))
sys.exit(1)
END
status=$?
# Python could not load the library, although the program may load it. Check the launcher'"'"'s variables instead.
if [ "$status" -eq 64 ]; then by_variables; fi
if [ "$status" -eq 1 ]; then fail; fi
exit "$status"
' > toolkit-preflight.sh || exit 1

mark preflight
# Check whether MPI reports the requested world size. If not, stop before the training starts.
start sh /work/ada/toolkit/runs/mnist-1/toolkit-preflight.sh --library /usr/lib/x86_64-linux-gnu/libmpi.so.40.30.6 --speaks pmix --tasks 2 || {
    status=$?
    echo "job: preflight failed with status $status; the job stops before the training" >&2
    exit "$status"
}

mark ranks
start /opt/app
