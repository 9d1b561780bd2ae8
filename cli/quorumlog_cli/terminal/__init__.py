"""What commands print and how they end: tables, progress, errors, interrupts."""
