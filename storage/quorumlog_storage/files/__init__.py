"""The seam to a disk, and the small files that the log engine keeps on it."""
