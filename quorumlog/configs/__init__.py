"""Settings that may change while nodes run: their names, types, defaults and limits (Kafka's dynamic configs)."""
