"""Files larger than memory, read by blocks of rows: for scores, for labels alone, and into the binary form."""
