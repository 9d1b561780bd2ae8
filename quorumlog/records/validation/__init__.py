"""What a broker does with a produced batch before it gets offsets (Kafka's `LogValidator`)."""
