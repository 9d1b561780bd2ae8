"""One simulated host: its disk with page cache and faults, its workers, and its one process."""
