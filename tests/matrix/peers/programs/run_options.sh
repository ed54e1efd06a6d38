#!/bin/sh
torchrun --nnodes=1 --nproc-per-node=1 ddp.py
