#!/bin/sh
# What a person puts around torchrun.
echo "training"
torchrun ddp.py
