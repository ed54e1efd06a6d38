"""Test thousands of damaged and hostile images, bundles and other inputs; ``make fuzz`` runs the tests."""
