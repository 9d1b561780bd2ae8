"""The broker towards the controller: registration, heartbeats, controlled shutdown, directory assignments.

`lifecycle.py` is the pure core, `shell.py` performs its effects, `controller_channel.py` is the connection that all
rooms use for calls to the controller. This room knows no partition and no other room. Begin with `lifecycle.py`.
"""
