"""The three formats: bytes and values by a schema, and the JSON in which commands and the console show them."""
