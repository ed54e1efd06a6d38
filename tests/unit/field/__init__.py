"""Tests of the engine on launches of other people."""
