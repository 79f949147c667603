"""From a typed query to a plan: build, then small rules, then text for people."""
