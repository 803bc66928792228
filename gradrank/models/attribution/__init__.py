"""How much each feature adds to the difference of two documents' scores, for every kind of ranker."""
