"""Boosted trees: LambdaMART, LambdaSMART, MART and McRank."""
