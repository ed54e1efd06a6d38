"""What the engine knows how to judge: one module a family, one function a rule."""
