"""Committed offsets of groups: the table, and the calls that read and change it. Pure."""
