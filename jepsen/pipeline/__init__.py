"""A real Spark that streams from topic to topic, exactly once, while everything around it is killed."""
