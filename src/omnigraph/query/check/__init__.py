"""From what was written to what it means on a schema; everything that is wrong in one run."""

from omnigraph.query.check.query import check_query

__all__ = ["check_query"]
