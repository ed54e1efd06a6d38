"""One parser for each tool: its raw lines in, plain values out (pure)."""
