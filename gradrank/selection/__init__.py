"""Training in order to choose: sweeps over weights, automatic portfolios, adaptation to another domain.

What is trained here is judged by :mod:`gradrank.evaluation`, which trains nothing.
"""
