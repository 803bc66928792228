"""Rankers behind HTTP: several models at once, A/B shares, interleaving, metrics, limits."""
