"""The command line: thin commands over the three programs."""
