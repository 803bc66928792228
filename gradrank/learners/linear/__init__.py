"""Linear rankers of large margin: RankSVM and SVMmap, by one bundle solver."""
