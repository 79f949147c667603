"""Reading an input of any kind in tasks: units of work, readers of formats, the parsed frame."""
