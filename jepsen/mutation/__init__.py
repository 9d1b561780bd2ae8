"""Mutants: known mistakes, as diffs of the production code, that the simulation, the crash sweep or a test must catch.

`mutant.py` reads them, `killers.py` tries them, `trial.py` runs all of them, `table.py` writes docs/mutants.md.
"""
