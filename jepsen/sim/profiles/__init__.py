"""What a simulation does: profiles, which name faults, chores and features, and one object for each feature."""
