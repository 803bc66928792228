"""FocusedRank for top-k truths: FocusedSVM, FocusedBoost and FocusedNet."""
