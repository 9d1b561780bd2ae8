"""A node's log directories: formatted, opened, watched, repaired, and left in order."""
