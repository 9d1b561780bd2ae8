"""`quorumlog tls`: an authority of one's own, and what it issues. It needs no cluster and no node."""
