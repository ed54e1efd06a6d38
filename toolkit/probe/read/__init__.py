"""Parse raw lines to plain values (pure); each module parses the output of one tool."""
