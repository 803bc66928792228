"""Click logs: reading them, and making labels of the clicks."""
