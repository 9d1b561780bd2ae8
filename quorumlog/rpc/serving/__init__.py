"""The serving end of every transport: who may call what, handlers in order, and their answers."""
