#!/bin/sh
# Start the MPI trial: the Python program if the image's Python has ctypes, else the compiled C program.
here=${0%/*}

# If an MPI is outside the loader's default folders, its programs contain the path of its folder (rpath). With the rpath,
# the MPI also finds libraries that it opens at run time, such as libfabric of Intel MPI. The trial has no rpath, so this
# script adds the folder.
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
echo "live: cannot load ctypes: the image has no Python with ctypes, and toolkit had no compiler for the C program"
exit 5
