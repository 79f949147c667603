"""The rules of the validator, one module each; ``write.validate`` is their conductor."""
