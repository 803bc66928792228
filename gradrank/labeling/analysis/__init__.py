"""What a labeling project tells: agreement, cost, tests, simulation."""
