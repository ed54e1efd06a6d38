"""Speed and memory of `toolkit explain` on long job output."""
