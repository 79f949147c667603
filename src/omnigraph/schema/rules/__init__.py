"""Static rules of the schema language: one module per subject, one function per rule."""
