"""Groups of the classic protocol: their members, rebalances and answers. Pure."""
