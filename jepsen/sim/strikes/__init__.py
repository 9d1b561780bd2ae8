"""The kinds of faults. A strike injects one and returns the function that undoes it."""
