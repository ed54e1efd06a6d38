#!/bin/sh
# The notebook end of an SSH tunnel, started on the node of the notebook: sh relay.sh PORT
# Use Python of the node. If the node has no Python, use Python in the image.
command -v python3 > /dev/null && exec python3 /work/ada/toolkit/runs/mnist-1/relay.py "$1"
exec apptainer exec --bind /work/ada/toolkit/runs/mnist-1 /work/ada/toolkit/images/tf2.15-cpu-0123456789ab.sif python3 /work/ada/toolkit/runs/mnist-1/relay.py "$1"
