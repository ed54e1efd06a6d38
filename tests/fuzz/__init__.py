"""Damaged and hostile images and facts files by the thousand; ``make fuzz``."""
