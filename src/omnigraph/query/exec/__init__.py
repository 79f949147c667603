"""Running a typed query: expressions over columns, and the operators around them."""
