"""The profile `quorum`: many cheap simulations of the metadata quorum alone.

One to five voters and up to three brokers that open no logs; clients that create, delete, configure and describe; every
fault that concerns a quorum. Afterwards the history must be linearizable (jepsen/linear), and the quorum must elect,
commit and agree again within bounds. The plan of a run is data, so that a failing run can be cut down (`sim/shrink/`).
"""
