"""The crash sweep: the production code is stopped at each call that it makes of a disk, and opened again."""
