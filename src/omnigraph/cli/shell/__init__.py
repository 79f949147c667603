"""The interactive shell: completion, reading of input, the session, the prompt."""
