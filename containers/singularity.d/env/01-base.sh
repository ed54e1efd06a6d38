#!/bin/sh
# This file is the first; 10-docker2singularity.sh then sets the image's variables.
