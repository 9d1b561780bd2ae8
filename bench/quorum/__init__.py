"""The quorum and its controller: changes, fencing, fail-over, and clusters of many brokers without logs."""
