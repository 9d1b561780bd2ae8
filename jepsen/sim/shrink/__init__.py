"""Cuts a failing run down to what its failure needs, and names the command that replays what is left."""
