"""What must hold after every step, and when messages leave: one module for each group of invariants."""
