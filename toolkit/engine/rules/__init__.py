"""The rules of the engine: one module for each topic, one function for each rule."""
