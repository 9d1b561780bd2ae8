"""Who a client is, and what it may do: principals, TLS, SASL, access rules and the table of rights."""
