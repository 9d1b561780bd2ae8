"""Fault injection: whole clusters in a deterministic simulation, checkers of what they did, and mutants to find.

`python -m jepsen` has the verbs (README.md). `sim` replaces the edges of a node, `checkers` are pure functions over
histories, `mutants` are known mistakes as diffs. Begin with `sim/run.py`.
"""
