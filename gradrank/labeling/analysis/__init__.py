"""Analysis of labeling: agreement between assessors, cost, tests between tools, simulated assessors."""
