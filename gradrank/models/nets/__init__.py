"""Rankers made of neural nets."""
