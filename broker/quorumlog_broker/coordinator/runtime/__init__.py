"""What makes a coordinator's core serve in a broker: its log, its loading, its time, and the calls that wait for it.

Begin with `group_coordinator.py`.
"""
