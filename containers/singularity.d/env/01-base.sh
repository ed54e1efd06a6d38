#!/bin/sh
# Comes first; what the image sets follows in 10-docker2singularity.sh.
