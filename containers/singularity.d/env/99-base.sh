#!/bin/sh
# The runtime puts libraries of the host (drivers) into this folder.
LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}/.singularity.d/libs
PS1=${PS1:-"Apptainer> "}
export LD_LIBRARY_PATH PS1
