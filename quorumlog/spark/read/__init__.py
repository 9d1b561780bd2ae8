"""Reads: options, the plan, and one task's rows, from a cluster or from its files."""
