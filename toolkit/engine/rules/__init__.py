"""The rules of the engine: a module for each topic, a function for each rule."""
