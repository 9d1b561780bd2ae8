"""Access rules (ACLs): which of them decide about a name, and the authorizer that asks them."""
