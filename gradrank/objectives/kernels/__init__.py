"""The compiled loops of the objectives."""
