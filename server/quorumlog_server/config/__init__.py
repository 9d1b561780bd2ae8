"""A node's configuration: its keys, the text they are read from, and the parts they are for."""
