"""Commands for partitions: plans, moves, leaders, and how far they are."""
