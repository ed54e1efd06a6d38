# Start a trainer with RANKS ranks of PyTorch or JAX: ranks.sh RANKS NAME OUTPUT OPTIONS...
ranks=$1 name=$2 output=$3
shift 3
port=$((20000 + $$ % 10000))
rank=0
while [ "$rank" -lt "$ranks" ]; do
    RANK=$rank LOCAL_RANK=$rank WORLD_SIZE=$ranks LOCAL_WORLD_SIZE=$ranks MASTER_ADDR=127.0.0.1 MASTER_PORT=$port \
        JAX_COORDINATOR_ADDRESS=127.0.0.1:$port JAX_NUM_PROCESSES=$ranks JAX_PROCESS_ID=$rank \
        python /test/small.py "$name" --output "$output" "$@" > "$output.$rank.log" 2>&1 &
    pids="$pids $!"
    rank=$((rank + 1))
done
status=0
for pid in $pids; do
    wait "$pid" || status=$?
done
cat "$output".*.log
exit "$status"
