"""The commands ``toolkit report`` and ``toolkit scale`` with a study: one module a task."""
