"""Applications of others, unmodified and started as their documentation says, against a cluster of `quorumlog up`."""
