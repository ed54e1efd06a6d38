#!/bin/sh
# Start the MPI trial: the Python program if the image's Python has ctypes, else the compiled C program.
here=${0%/*}

# Programs of an MPI outside the loader's default folders contain the MPI's folder (rpath). Through it, the MPI also finds
# libraries that it opens at run time, such as libfabric of Intel MPI. The trial has no rpath, so the folder is added here.
folder=${1%/*}
case $folder in
    "$1" | /lib | /lib64 | /usr/lib | /usr/lib64 | /lib/*-linux-gnu* | /usr/lib/*-linux-gnu*) ;;
    *) export LD_LIBRARY_PATH="$folder${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" ;;
esac

if python3 -c 'import ctypes, array' 2> /dev/null; then
    exec python3 "$here/trial.py" "$@"
elif [ -f "$here/trial" ]; then
    exec "$here/trial" "$@"
fi
echo "live: cannot load ctypes: the Python of the image is without it, and no compiler made the C program"
exit 5
