"""Scripted faults: each waits for one situation and strikes in it."""
