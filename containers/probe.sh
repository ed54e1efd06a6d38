#!/bin/sh
# Ask a machine what the rules of toolkit need to know. Read by `sh -s`; asks, and never judges.
#
# POSIX sh only: dash, busybox and bash run the same bytes on hosts, compute nodes and inside images.
# The answer is a text: a version line, then a section a question ("@ name", raw lines behind "|",
# "@rc N"), then "@end". Nothing is written to disk. No user name, token or whole environment leaves.

LC_ALL=C
PATH="$PATH:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
export LC_ALL PATH

# Run a command for at most $1 seconds; 124 says that it took longer.
if timeout 1 true </dev/null >/dev/null 2>&1; then
    limit() { timeout "$@"; }
else
    limit() {
        seconds=$1
        shift
        "$@" &
        asked=$!
        (
            sleep "$seconds"
            kill "$asked"
        ) >/dev/null 2>&1 &
        watch=$!
        wait "$asked"
        status=$?
        kill "$watch" 2>/dev/null
        wait "$watch" 2>/dev/null
        [ "$status" -eq 143 ] && status=124
        return "$status"
    }
fi

# ask NAME SECONDS SHELL-TEXT. Standard input is closed: it is this script.
ask() {
    printf '@ %s\n' "$1"
    answer=$(limit "$2" sh -c "$3" </dev/null 2>&1)
    status=$?
    [ -n "$answer" ] && printf '%s\n' "$answer" | sed -e 's/^/|/' -e '1000q'
    printf '@rc %d\n' "$status"
}

# Prints variables that change how MPI starts with their values, some others by name alone.
# The home folder and the name of the person are taken out of the values.
# shellcheck disable=SC2016 # the text is for another shell
variables='
    person=$(id -un 2>/dev/null)
    home=${HOME:-/nonexistent} person=${person:-/} awk '"'"'
        function without(text, word, mark,   at, done) {
            while (word != "" && word != "/" && (at = index(text, word))) {
                done = done substr(text, 1, at - 1) mark
                text = substr(text, at + length(word))
            }
            return done text
        }
        /^(OMPI_MCA_|PMIX_MCA_|PRTE_MCA_)[A-Za-z0-9_]*=/ ||
        /^(OPAL_PREFIX|OPAL_LIBDIR|PMIX_PREFIX|PMIX_INSTALL_PREFIX|PRTE_PREFIX|PMIX_VERSION|SLURM_MPI_TYPE)=/ {
            print without(without($0, ENVIRON["home"], "~"), "/" ENVIRON["person"] "/", "/-/")
            next
        }
        /^(UCX|FI|NCCL|HOROVOD|I_MPI|MPICH|MPIR|MV2|HYDRA|APPTAINER|APPTAINERENV|SINGULARITY|SINGULARITYENV)_[A-Z0-9_]*=/ ||
        /^(LD_LIBRARY_PATH|LD_PRELOAD|PYTHONPATH|PYTHONHOME|TMPDIR)=/ {
            sub(/=.*/, ""); print
        }'"'"'
'

printf 'toolkit-probe/1\n'

ask architecture 2 'uname -m'
ask kernel 2 'uname -r'
ask os-release 2 'cat /etc/os-release'
ask glibc 2 'getconf GNU_LIBC_VERSION || ldd --version | head -n 1'
ask slurm 5 'sinfo --version || srun --version'
ask mpi-list 5 'srun --mpi=list'
ask slurm-config 5 'scontrol show config |
    grep -E "^(MpiDefault|MpiParams|ProctrackType|TaskPlugin|SlurmdSpoolDir|TmpFS|PluginDir|JobContainerType)[ =]"'
ask partitions 5 'sinfo -h -o "%P|%D|%a|%c|%m|%G"'

# Which libpmix Slurm opens: the path that its plugin names or is linked with, else the loader's own.
# shellcheck disable=SC2016
ask pmix 5 '
    folder=$(scontrol show config 2>/dev/null | sed -n "s/^PluginDir *= *//p")
    for plugin in "${folder:-/nonexistent}"/mpi_pmix_v*.so /usr/lib/*/slurm*/mpi_pmix_v*.so /usr/lib64/slurm/mpi_pmix_v*.so; do
        [ -f "$plugin" ] || continue
        printf "plugin %s\n" "$plugin"
        grep -a -o "/[A-Za-z0-9_./+-]*/libpmix\.so[0-9.]*" "$plugin" | sed "s/^/named /"
        ldd "$plugin" 2>/dev/null | sed -n "s/.*libpmix\.so[0-9.]* => \(\/[^ ]*\).*/linked \1/p"
    done | sort -u
    for file in $(ldconfig -p 2>/dev/null | sed -n "s/.*libpmix\.so[0-9.]* .*=> //p") \
        /usr/lib/*/pmix2/lib/libpmix.so.2 /usr/lib64/libpmix.so.2 /usr/local/lib/libpmix.so.2 /opt/pmix/lib/libpmix.so.2; do
        [ -f "$file" ] && readlink -f "$file"
    done | sort -u | while read -r file; do
        printf "file %s\n" "$file"
        grep -a -o "OpenPMIx [0-9][0-9.a-z]*" "$file" | head -n 1 | sed "s/^/says /"
    done'

# shellcheck disable=SC2016
ask launchers 5 '
    for name in mpirun mpiexec srun; do
        path=$(command -v "$name") || continue
        printf "path %s\n" "$path"
        printf "real %s\n" "$(readlink -f "$path")"
        [ "$name" = srun ] || "$path" --version </dev/null 2>&1 | head -n 12 | sed "s/^/says /"
    done'
# What mpirun hands to its ranks, seen from one rank here. Root may, where root is who asks.
ask launcher-environment 5 "
    command -v mpirun >/dev/null || exit 127
    OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 \\
    PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun -n 1 env | {
    $variables
    }"

# shellcheck disable=SC2016
ask runtime 5 '
    for name in apptainer singularity; do
        path=$(command -v "$name") && break
    done
    [ -n "$path" ] || exit 127
    printf "path %s\n" "$path"
    "$path" --version
    settings=$("$path" buildcfg 2>/dev/null)
    libexec=$(printf "%s\n" "$settings" | sed -n "s/^LIBEXECDIR=//p")
    sysconf=$(printf "%s\n" "$settings" | sed -n "s/^SYSCONFDIR=//p")
    for folder in "$libexec"/apptainer/bin "$libexec"/singularity/bin; do
        [ -d "$folder" ] || continue
        printf "starter %s\n" "$folder"
        [ -u "$folder/starter-suid" ] && printf "setuid yes\n" || printf "setuid no\n"
        [ -x "$folder/squashfuse_ll" ] && printf "squashfuse %s\n" "$folder/squashfuse_ll"
    done
    cat "$sysconf"/apptainer/apptainer.conf "$sysconf"/singularity/singularity.conf 2>/dev/null |
        grep -E "^(mount tmp|mount home|mount dev|mount hostfs|allow setuid|enable overlay|enable underlay|sessiondir max size|user bind control) *=" |
        sed "s/^/setting /"
    true'
# shellcheck disable=SC2016
ask user-namespaces 3 '
    for name in user/max_user_namespaces kernel/unprivileged_userns_clone kernel/apparmor_restrict_unprivileged_userns; do
        [ -r "/proc/sys/$name" ] && printf "%s = %s\n" "$name" "$(cat /proc/sys/$name)"
    done
    command -v unshare >/dev/null || exit 127
    unshare -U true'
ask squashfuse 2 'command -v squashfuse_ll || command -v squashfuse'
ask gpu 5 '[ -e /proc/driver/nvidia/version ] || command -v nvidia-smi >/dev/null || exit 127
    cat /proc/driver/nvidia/version 2>/dev/null
    nvidia-smi --query-gpu=driver_version,name --format=csv,noheader'
ask network 2 'ls /sys/class/net; ls /sys/class/infiniband 2>/dev/null | sed "s/^/infiniband /"; true'
# shellcheck disable=SC2016
ask memory 2 'printf "locked %s\n" "$(ulimit -l)"; df -Pk /dev/shm | sed -n "2s/^[^ ]* *\([0-9]*\).*/shm \1/p"'
ask environment 2 "env | {
    $variables
    }"

printf '@end\n'
