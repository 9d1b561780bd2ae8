"""`quorumlog bench`: measures a cluster with our clients in processes of their own."""
