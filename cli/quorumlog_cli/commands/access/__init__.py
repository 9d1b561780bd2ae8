"""Commands on who may do what."""
