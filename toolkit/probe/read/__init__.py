"""Parse the output of one tool in each module: raw lines to plain values (pure)."""
