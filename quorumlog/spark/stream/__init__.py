"""Streams: where one is, how far a batch goes, and what its tasks read."""
