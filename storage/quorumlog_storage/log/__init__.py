"""A log: batches in segments, how they are appended, cut and read."""
