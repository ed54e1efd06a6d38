"""Test the engine with public reports of launches on clusters that the project never used."""
