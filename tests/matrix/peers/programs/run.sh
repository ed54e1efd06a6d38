#!/bin/sh
# A script around torchrun, as users write it.
echo "training"
torchrun ddp.py
