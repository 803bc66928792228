"""Rankers made of regression trees."""
