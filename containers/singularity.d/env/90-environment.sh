#!/bin/sh
# For variables that the user adds to the image.
