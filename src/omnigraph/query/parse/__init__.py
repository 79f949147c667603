"""`.gq` text to AST by recursive descent, with all syntax mistakes of a text in one report."""

from omnigraph.query.parse.codes import SyntaxCode
from omnigraph.query.parse.queries import parse_queries, read_queries

__all__ = ["SyntaxCode", "parse_queries", "read_queries"]
