# Start a trainer with RANKS ranks of PyTorch: ranks.sh RANKS NAME OUTPUT OPTIONS...
ranks=$1 name=$2 output=$3
shift 3
rank=0
while [ "$rank" -lt "$ranks" ]; do
    RANK=$rank LOCAL_RANK=$rank WORLD_SIZE=$ranks LOCAL_WORLD_SIZE=$ranks MASTER_ADDR=127.0.0.1 MASTER_PORT=29500 \
        python /test/small.py "$name" --output "$output" --strategy ddp "$@" > "$output.$rank.log" 2>&1 &
    pids="$pids $!"
    rank=$((rank + 1))
done
status=0
for pid in $pids; do
    wait "$pid" || status=$?
done
cat "$output".*.log
exit "$status"
