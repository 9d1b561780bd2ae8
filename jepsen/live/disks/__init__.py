"""The ways to strike a disk of a running node."""
