"""The writer of a log directory: jobs, the group commit, and what becomes of both when the disk fails."""
