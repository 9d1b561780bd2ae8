"""Changes of many partitions at once: brokers that come and go, balance, deleted topics."""
