"""Clients with few rights, and an operator who changes rights, users and quotas all the time."""
