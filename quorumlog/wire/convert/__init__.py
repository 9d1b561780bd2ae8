"""Conversion between Kafka's messages (dicts, in one version) and ours: `mirror` for most, one file each for others."""
