"""Commands for consumer groups."""
