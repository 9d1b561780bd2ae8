"""Restarting the nodes of a cluster one by one, so that nothing is missed meanwhile: `quorumlog roll`.

`picture.py` is what was read of the cluster at one moment, `obstacles.py` what forbids to restart a node in it,
`plan.py` the order and what each restart takes from clients, `roll.py` the steps. These are pure: time and pictures go
in, effects come out. `reading.py` asks a cluster, `driving.py` carries the effects out.
"""
