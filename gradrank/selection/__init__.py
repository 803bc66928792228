"""Training in order to choose: sweeps over weights, automatic portfolios, adaptation to another domain."""
