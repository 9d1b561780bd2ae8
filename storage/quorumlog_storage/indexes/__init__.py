"""The indexes of a segment: caches that are made from its log file and can be made again."""
