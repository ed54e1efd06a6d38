# Many centres use the variable WORK for the user's folder on the large shared file system.
# shellcheck shell=sh
WORK="/work/$(id -un)"
export WORK
