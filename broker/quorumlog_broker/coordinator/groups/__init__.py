"""The coordinator of consumer groups: the core of one partition of `__consumer_offsets`."""
