"""Between Kafka's messages, as dicts of one version, and ours: `mirror` for most, a file for each that differs."""
