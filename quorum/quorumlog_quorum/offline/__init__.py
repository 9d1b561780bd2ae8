"""The metadata log of a stopped node: what it holds, and recovery after a lost majority."""
