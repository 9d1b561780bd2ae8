"""`quorumlog explain`, `check` and `diagnose`: why something is as it is."""
