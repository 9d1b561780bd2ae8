"""What must hold of coordinators: their cores against their logs, groups, transactions."""
