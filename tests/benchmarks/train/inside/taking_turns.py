"""Run a trainer that takes turns with another program, one epoch each.

Usage: taking_turns.py MODULE OPTION…
"""

import runpy
import sys

from baton import Baton

from toolkit.trainers.training.metrics import Metrics

module, *options = sys.argv[1:]
baton, written = Baton(), Metrics.epoch


def epoch(self, **values):
    written(self, **values)
    baton.hand_on()


Metrics.epoch = epoch
name = f"toolkit.trainers.{module}"
sys.argv = [name, *options]
runpy.run_module(name, run_name="__main__", alter_sys=True)
