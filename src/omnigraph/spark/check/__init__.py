"""The one validator's rules at scale: the same violations, found by joins and aggregates."""
