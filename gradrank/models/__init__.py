"""Rankers: they score documents, save and load; what users have instead of one becomes one here."""
