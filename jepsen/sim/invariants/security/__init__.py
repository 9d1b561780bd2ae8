"""Invariants of who may do what, for how long, and how much of it."""
