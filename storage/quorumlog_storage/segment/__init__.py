"""One segment of a log: its log file, and the indexes that are made from it."""
