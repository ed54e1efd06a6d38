"""Test the engine with public reports of launches."""
