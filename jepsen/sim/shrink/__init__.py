"""Cuts a failing run down to what its failure needs: the search, and the options of the command line."""
