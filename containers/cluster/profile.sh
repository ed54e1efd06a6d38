# The large file system that all nodes share; many centres call it so.
# shellcheck shell=sh
WORK="/work/$(id -un)"
export WORK
