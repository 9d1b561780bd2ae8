"""Blocking clients, as far as they are written by hand: calls go to one background loop, callbacks come back."""
