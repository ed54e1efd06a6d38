#!/bin/bash
# Run mpirun in a container with ranks on other nodes: bash toolkit-mpirun.sh CONTAINER... -- MPIRUN...
#
# The container has no srun, so mpirun cannot start containers on other nodes. Instead of ssh, mpirun calls toolkit-agent
# with a node and a command. The agent writes both to a file. This script reads the file, and srun starts the command on
# the node, in a container with the same options.
set -u

container=()
while [ "$#" -gt 0 ] && [ "$1" != -- ]; do
    container+=("$1")
    shift
done
shift

folder=${BASH_SOURCE[0]%/*}/daemons
rm -rf -- "$folder" && mkdir -- "$folder" || exit 1
cat > "$folder/toolkit-agent" << "END" && chmod 755 "$folder/toolkit-agent" || exit 1
#!/bin/sh
# Replaces ssh in the container: toolkit-agent NODE COMMAND...
# toolkit-agent --start WORDS... starts mpirun and its daemons with the agent on PATH.
if [ "${1:-}" = --start ]; then
    shift
    PATH=${0%/*}:$PATH
    export PATH
    exec "$@"
fi
folder=${0%/*}
while :; do
    case ${1:-} in
    -*) shift ;;
    *) break ;;
    esac
done
node=$1
shift
printf "%s\000%s\000" "$node" "$*" > "$folder/$$.part" && mv "$folder/$$.part" "$folder/$$.asked"
END

# daemon NODE COMMAND: start a daemon of mpirun on a node. Its ranks can use all cores, and other steps may run meanwhile.
daemon() {
    local node=$1 command=$2 status
    env -u SRUN_CPUS_PER_TASK -u SLURM_CPUS_PER_TASK SLURM_OVERLAP=1 \
        srun --mpi=none --nodes=1 --ntasks=1 --ntasks-per-node=1 --nodelist="$node" --cpu-bind=none \
        "${container[@]}" sh "$folder/toolkit-agent" --start sh -c "$command" < /dev/null
    status=$?
    [ "$status" -ne 0 ] || return 0
    # mpirun exits after a daemon exits. It would wait without end for a daemon that never started.
    for _ in {1..25}; do
        [ ! -e "$folder/ended" ] || return 0
        sleep 0.2
    done
    echo "job: the daemon of mpirun on $node exited with status $status; stopping mpirun" >&2
    echo "$status" > "$folder/lost"
    kill "$mpirun" 2> /dev/null
}

# Pass on only the first signal, because an mpirun that gets two signals does not stop its ranks.
signals=0
# shellcheck disable=SC2317
end() {
    signals=$((signals + 1))
    [ "$signals" -gt 1 ] || kill "$mpirun" 2> /dev/null
}

"${container[@]}" sh "$folder/toolkit-agent" --start "$@" &
mpirun=$!
trap end INT TERM HUP

others=$((${SLURM_JOB_NUM_NODES:-1} - 1))
while [ "$others" -gt 0 ] && kill -0 "$mpirun" 2> /dev/null; do
    for file in "$folder"/*.asked; do
        if { IFS= read -r -d "" node && IFS= read -r -d "" command; } 2> /dev/null < "$file"; then
            daemon "$node" "$command" &
            rm -f -- "$file"
            others=$((others - 1))
        fi
    done
    sleep 0.2
done

status=
until [ -n "$status" ]; do
    heard=$signals
    wait "$mpirun"
    status=$?
    # A signal ends `wait`, but mpirun continues.
    [ "$heard" -eq "$signals" ] || status=
done
: > "$folder/ended"
# Daemons exit after mpirun exits. Slurm kills any remaining daemon at the end of the job.
for _ in {1..50}; do
    [ -n "$(jobs -pr)" ] || break
    sleep 0.2
done
[ ! -e "$folder/lost" ] || status=$(cat "$folder/lost")
rm -rf -- "$folder"
exit "$status"
