"""What must hold of the metadata: the quorum that keeps it, its votes and calls, its transactions and levels."""
