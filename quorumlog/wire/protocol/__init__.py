"""What both ends of a connection agree on: the table of APIs, whole frames, versions, features, proof, and limits."""
