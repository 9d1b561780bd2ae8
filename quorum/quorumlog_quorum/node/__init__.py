"""One node's part in the quorum: the loop around the core, its log, its peers and its listeners."""
