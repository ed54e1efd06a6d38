#!/bin/sh
# Ask a machine what the rules of toolkit need to know. Read by `sh -s`; asks, and never judges.
#
# POSIX sh only: dash, busybox and bash run the same bytes on hosts, compute nodes and inside images.
# The answer is a text: a version line, then a section a question ("@ name", raw lines behind "|",
# "@rc N"), then "@end". Nothing stays on disk. No user name, token or whole environment leaves.

LC_ALL=C
PATH="$PATH:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
export LC_ALL PATH

# A question gets a process group of its own, so that nothing of it outlives its limit.
if command -v setsid >/dev/null; then
    apart() { exec setsid "$@"; }
else
    apart() { exec "$@"; }
    set -m 2>/dev/null # where there is no terminal, dash and busybox refuse
fi

# Answers go through a file: a pipe would be held open by whatever escapes the group.
folder=${TMPDIR:-/tmp}/toolkit-probe.$$
(umask 077 && mkdir "$folder") 2>/dev/null || folder=
trap '[ -z "$folder" ] || rm -rf "$folder"' EXIT
trap 'exit 143' HUP INT TERM

# Run a shell text for at most $1 seconds; 124 says that it took longer.
limit() {
    (apart sh -c "$2") </dev/null 2>&1 &
    asked=$!
    # Killed hard: what ignores TERM would hold us up.
    (apart sh -c "sleep $1; kill -9 -$asked || kill -9 $asked") </dev/null >/dev/null 2>&1 &
    watch=$!
    wait "$asked" 2>/dev/null
    status=$?
    { kill -9 "-$watch" || kill -9 "$watch"; } 2>/dev/null
    wait "$watch" 2>/dev/null
    [ "$status" -eq 137 ] && status=124
    return "$status"
}

# The home folder and the name of the person are taken out of every answer.
escaped() { printf '%s\n' "$1" | sed 's/[][\\.*^$|]/\\&/g'; }
home=$(escaped "${HOME:-/}") person=$(escaped "$(id -un 2>/dev/null)")
[ "$home" = / ] && home=/nonexistent
case $person in '' | root | bin | sys | lib) person=nobody ;; esac
written() {
    sed -e "s|$home/|~/|g" -e "s|$home\$|~|" -e "s|$home\([:;, ]\)|~\1|g" -e "s|/$person/|/-/|g" \
        -e "s|/$person\$|/-|" -e 's/^/|/' -e '1000q'
}

# ask NAME SECONDS SHELL-TEXT. All questions share one budget; what is asked after it is spent is not known.
begun=$(date +%s 2>/dev/null) || begun=
ask() {
    seconds=$2
    if [ -n "$begun" ]; then
        left=$((begun + 40 - $(date +%s)))
        [ "$seconds" -le "$left" ] || seconds=$left
    fi
    printf '@ %s\n' "$1"
    if [ "$seconds" -le 0 ]; then
        status=124
    elif [ -n "$folder" ]; then
        limit "$seconds" "$3" >"$folder/answer"
        status=$?
        [ -s "$folder/answer" ] && written <"$folder/answer"
    else
        answer=$(limit "$seconds" "$3")
        status=$?
        [ -n "$answer" ] && printf '%s\n' "$answer" | written
    fi
    printf '@rc %d\n' "$status"
}

# Prints variables that change how MPI starts with their values, some others by name alone.
# shellcheck disable=SC2016 # the text is for another shell
variables='
    awk '"'"'
        /^(OMPI_MCA_|PMIX_MCA_|PRTE_MCA_)[A-Za-z0-9_]*=/ ||
        /^(OPAL_PREFIX|OPAL_LIBDIR|PMIX_PREFIX|PMIX_INSTALL_PREFIX|PRTE_PREFIX|PMIX_VERSION|SLURM_MPI_TYPE)=/ {
            print
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
    seen=
    for plugin in "${folder:-/nonexistent}"/mpi_pmix.so "${folder:-/nonexistent}"/mpi_pmix_v*.so \
        /usr/lib/*/slurm*/mpi_pmix.so /usr/lib/*/slurm*/mpi_pmix_v*.so \
        /usr/lib64/slurm/mpi_pmix.so /usr/lib64/slurm/mpi_pmix_v*.so; do
        [ -f "$plugin" ] || continue
        printf "plugin %s\n" "$(readlink -f "$plugin")"
        for found in $({
            grep -a -o "/[A-Za-z0-9_./+-]*/libpmix\.so[0-9.]*" "$plugin" | sed "s/^/named=/"
            ldd "$plugin" 2>/dev/null | sed -n "s/.*libpmix\.so[0-9.]* => \(\/[^ ]*\).*/linked=\1/p"
        } | sort -u); do
            file=${found#*=}
            real=$(readlink -f "$file")
            printf "%s %s\n" "${found%%=*}" "${real:-$file}"
            seen="$seen ${real:-$file}"
        done
    done
    for file in $seen $(ldconfig -p 2>/dev/null | sed -n "s/.*libpmix\.so[0-9.]* .*=> //p") \
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
    [ "$(id -u)" -eq 0 ] && printf "asked as root\n"
    command -v unshare >/dev/null || exit 127
    unshare -Ur true'
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
