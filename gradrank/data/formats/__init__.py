"""File formats of ranking data: one file per format, and the registry that knows them by their endings."""
