"""A schema from data: what tables hold, put into words of the schema language."""
