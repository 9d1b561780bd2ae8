"""Which faults and which sizes a simulation draws from its seed."""
