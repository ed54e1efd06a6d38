"""Parse raw lines to plain values (pure functions); each module parses the output of one tool."""
