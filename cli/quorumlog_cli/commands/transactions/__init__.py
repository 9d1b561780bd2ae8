"""Commands for transactions of producers."""
