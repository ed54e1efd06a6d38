"""The parts of ``toolkit report`` and ``toolkit scale`` that work on studies."""
