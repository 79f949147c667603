"""The schema language: `.pg` text to a checked catalog with stable numbers, and entity ids."""
