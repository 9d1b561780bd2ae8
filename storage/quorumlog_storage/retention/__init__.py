"""How records leave a log before the log itself does.

`retired.py`: the one way out for segments: renamed by the log's writer, freed in steps away from it. `policy.py`: what
a topic's policy lets go.
"""
