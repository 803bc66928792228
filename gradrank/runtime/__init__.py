"""What everything runs on: compiled kernels, threads, files that appear whole."""
