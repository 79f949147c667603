"""Reading what is loaded: files, streams, records and tables, as typed rows."""
