"""What Python users hold in their hands: a graph, and what hangs on it."""
