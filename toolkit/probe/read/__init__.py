"""One parser a tool: its raw lines in, plain values out; pure."""
