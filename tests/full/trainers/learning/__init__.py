"""Programs that run inside the training image, and the formulas of the papers that they are compared with."""
