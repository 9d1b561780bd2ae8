"""Drivers and tasks that write batches in joint transactions, and what they write down (decision 112).

The simulation runs them on a simulated host (jepsen/sim/workload/transactions/joint.py). What they saw is judged by
jepsen.checkers.joint.
"""
