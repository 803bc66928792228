"""Model files of other tools: one file per format."""
