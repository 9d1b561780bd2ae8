"""Commands for the cluster as a whole: its quorum, metadata, features and settings."""
