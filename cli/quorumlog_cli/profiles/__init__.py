"""Profiles: which cluster a command means, and how to reach it."""
