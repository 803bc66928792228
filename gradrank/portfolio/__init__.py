"""Several rankers for one task: a budgeted portfolio, and the adaptation of a ranker to another domain."""
