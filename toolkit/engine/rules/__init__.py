"""The engine's rules: one module for each topic, one function for each rule."""
