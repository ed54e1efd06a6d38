#!/bin/sh
# This file is for variables that the user adds to the image.
