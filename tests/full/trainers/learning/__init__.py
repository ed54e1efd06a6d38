"""Programs that run in the training image, and the published formulas for comparison."""
