"""Build, inspect, convert, copy, sign and verify images."""
