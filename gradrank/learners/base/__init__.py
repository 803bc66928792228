"""What all families of learners share: the estimator, checks, the record of a training, checkpoints."""
