#!/bin/sh
# For what a person adds to the image's environment.
