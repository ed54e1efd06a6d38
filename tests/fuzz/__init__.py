"""Test thousands of damaged and hostile images and facts files; ``make fuzz`` runs the tests."""
