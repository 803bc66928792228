"""Several processes that do one piece of work together, on this machine or on a cluster."""
