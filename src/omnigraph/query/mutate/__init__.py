"""Mutations: statements against a pinned snapshot become one delta and one commit.

typed mutation -> find rows -> [images | removals] -> GraphDelta -> validate -> publish
"""

from omnigraph.query.mutate.run import MutationOutcome, run_mutation

__all__ = ["MutationOutcome", "run_mutation"]
