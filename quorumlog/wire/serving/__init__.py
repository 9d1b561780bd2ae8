"""The listening end: a listener, its connections, the requests at work, and the answers on their way out."""
