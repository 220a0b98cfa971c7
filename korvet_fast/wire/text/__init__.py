"""The text protocol: a request is a line, and so is its answer."""
