"""What an operator may set of a node: one module for each part, which commands on files may load, too."""
