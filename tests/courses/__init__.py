"""Test the lessons of ``docs/courses`` by running their commands as a reader would."""
