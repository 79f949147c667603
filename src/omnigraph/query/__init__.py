"""The query language: `.gq` text to rows, and to changes."""
