"""`quorumlog generate`: what Grafana and Prometheus are given."""
