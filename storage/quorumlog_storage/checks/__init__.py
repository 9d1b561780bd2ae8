"""The check of closed segments while a node runs."""
