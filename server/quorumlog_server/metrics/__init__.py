"""A node's metrics for Prometheus: loaded at the first scrape, built in a thread."""
