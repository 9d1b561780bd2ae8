"""The drill: faults at a running cluster, and whether an operator's tools name each without being told."""
