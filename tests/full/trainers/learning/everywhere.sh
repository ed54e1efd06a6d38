# Run options with each strategy, first in one process; the test compares the other runs with this run.
every() { # STRATEGY RANKS
    set -- "$1" "$2" python /tests/everywhere.py "$1" /out
    ranks=$2
    shift 2
    [ "$ranks" = 1 ] || set -- mpirun --bind-to none --oversubscribe -n "$ranks" "$@"
    "$@" >/out/log 2>&1 || { echo "$*: status $?"; cat /out/log; }
    grep -h -o "RESULT .*" /out/log
}
every single 1
every mirrored 1
for strategy in horovod multiworker mpi-aggregate hybrid; do every $strategy 2; done
every ps 4
every ps-sync 4
