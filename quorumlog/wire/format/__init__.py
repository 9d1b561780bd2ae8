"""Kafka's bytes: primitives, field lists, headers and frames. Pure; knows nothing of our messages."""
