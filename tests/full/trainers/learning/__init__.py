"""Programs that run inside the training image, and the papers' formulas that they are held against."""
