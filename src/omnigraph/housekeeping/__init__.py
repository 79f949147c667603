"""What is done beside writes: intents of those that run, traces of those that died, what other
programs see. Nothing that is published depends on it."""
