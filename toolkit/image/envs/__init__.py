"""Packages of a user mounted over an unchanged image: resolve, build, pack into one file, check."""
