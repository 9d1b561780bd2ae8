"""A node's process: the parts of a node put together, its listeners, health, metrics and end."""
