"""What the tests of the pipeline share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest


@pytest.fixture
def where_omnigraph_is() -> Callable[[Any], set[str]]:
    """Ask the workers of a session where they would import omnigraph from."""

    def ask(spark: Any) -> set[str]:
        def look(batches):  # A function in a function: it is sent by its code, not by its name.
            import pyarrow as pa

            for _ in batches:
                pass
            try:
                import omnigraph

                place = omnigraph.__file__
            except ImportError:
                place = "nowhere"
            yield pa.RecordBatch.from_pydict({"place": [place]})

        # A worker process that looked once in vain must look again.
        rows = spark.range(0, 4, 1, 4).mapInArrow(look, "place string").collect()
        return {row["place"] for row in rows}

    return ask
