"""What people look at: how fast it is, and what it takes of the node."""
