"""The floor: bare processes that do what ours do with nothing of ours, and the load for them."""
