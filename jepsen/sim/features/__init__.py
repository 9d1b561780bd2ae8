"""What a profile of the simulation names: one object for each part of a run that other runs do not have."""
