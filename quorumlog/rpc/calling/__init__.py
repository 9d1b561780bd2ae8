"""The calling end of every transport: pending calls, ordered streams of them, this node's proof, and probes."""
