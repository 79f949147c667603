"""Derived state for traversal: numbers for node ids, and sorted pairs of them for edges.

It is never stored, may be dropped at any time, and changes cost, never an answer (INV-6).
"""
