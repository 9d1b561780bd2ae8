"""Apache Kafka and ours beside each other: what is measured of both, and the table."""
