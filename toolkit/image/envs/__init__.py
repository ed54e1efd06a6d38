"""Packages of a user over an image that stays as it is: resolved, built, packed into one file, checked."""
