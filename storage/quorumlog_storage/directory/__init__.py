"""A log directory: its own files, and the partitions in it."""
