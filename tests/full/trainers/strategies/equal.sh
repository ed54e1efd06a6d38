# Train 20 steps of 32 images with every strategy, and print the distance of the weights from one process.
cd /out
small() { # NAME RANKS BATCH OPTIONS...
    name=$1 ranks=$2 batch=$3
    shift 3
    set -- python /test/small.py --output "/out/$name" --batch-size "$batch" --reference-batch 32 "$@"
    [ "$ranks" = 1 ] || set -- mpirun --bind-to none --oversubscribe -n "$ranks" "$@"
    "$@" >"$name.log" 2>&1 || { echo "$name: status $?"; cat "$name.log"; }
}
small single 1 32 --strategy single
for ranks in 2 4; do
    small horovod-$ranks $ranks $((32 / ranks)) --strategy horovod
    small multiworker-$ranks $ranks $((32 / ranks)) --strategy multiworker
    small mpi-aggregate-$ranks $ranks $((32 / ranks)) --strategy mpi-aggregate
    small mirrored-$ranks 1 $((32 / ranks)) --strategy mirrored --devices $ranks
done
small hybrid-4 2 8 --strategy hybrid --devices 2
small ps-sync-4 4 16 --strategy ps --sync
small delayed-2 2 16 --strategy mpi-aggregate --ksteps 10
export NORMAL=1
small normal-mirrored 1 16 --strategy mirrored --devices 2 --epochs 2 --learning-rate 0.01
small normal-multiworker 2 16 --strategy multiworker --epochs 2 --learning-rate 0.01
small normal-ps 3 32 --strategy ps --epochs 2 --learning-rate 0.01
python - <<'PYTHON'
import glob, json, os
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "2"
import tensorflow as tf
weights = {}
for file in sorted(glob.glob("/out/*/model.keras")):
    weights[file.split("/")[2]] = tf.keras.models.load_model(file).get_weights()
one = weights["single"]
for name, other in weights.items():
    lines = [json.loads(line) for line in open(f"/out/{name}/metrics.jsonl")]
    lines = [line for line in lines if line["record"] != "start"]
    apart = max(abs(a - b).max() for a, b in zip(one, other)) if len(one) == len(other) else None
    print("RESULT", json.dumps({
        "name": name, "apart": None if apart is None else float(apart), "header": lines[0],
        "loss": lines[1]["loss"], "accuracy": lines[-1]["test_accuracy"], "images": lines[1]["images"],
    }))
PYTHON
