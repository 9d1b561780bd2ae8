"""Checks of histories and clusters: pure functions that return what is violated."""
