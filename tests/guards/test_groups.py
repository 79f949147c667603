"""Tests of one group run in one process: they share a JVM, or race with each other on purpose."""

from __future__ import annotations

import pytest


def test_xdist_can_mark_groups(request: pytest.FixtureRequest) -> None:
    """xdist writes a test's group into this attribute, and nothing fails when it is not there: the
    groups just fall apart."""
    assert hasattr(request.node, "_nodeid")
