"""The calling end: a connection to one address, over as many sockets as its calls need."""
