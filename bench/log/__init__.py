"""The log alone, in one process: its engine beside bare system calls, a large one, compaction, closing."""
