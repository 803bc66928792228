"""A labeling project: its database, import and export, assignment, access, judging."""
