"""The simulated network: links, sessions, sockets, and production's transport over them."""
