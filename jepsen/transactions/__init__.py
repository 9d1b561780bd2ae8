"""The transactional list-append workload: its clients and what they write down, over any transport.

The simulation runs them on simulated hosts (jepsen/sim/workload/transactions/transactions.py), `./dev transactions`
against real processes (jepsen/live/transactions). What they saw is judged by jepsen.checkers.transactional_history.
"""
