"""Rule 4: the number of edges per source stays within ``@card``.

Checked for every source whose edges the delta touches; a source that never had an edge is not
held to the minimum, and one that disappears is not held to anything. The default ``0..`` reads
nothing.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.arrow.compute import pc
from omnigraph.arrow.sets import true_at, union, without
from omnigraph.errors import Violation
from omnigraph.rules.findings import Finding, row_violation
from omnigraph.rules.image import TableImage, bounded
from omnigraph.rules.table_delta import CommittedState
from omnigraph.rules.words import out_of_bounds
from omnigraph.schema.catalog import EdgeType


def check_cardinality(
    images: Mapping[str, TableImage], image: TableImage, committed: CommittedState
) -> list[Finding]:
    """Sources with too many or too few edges. At most one lookup."""
    edge, cardinality = image.delta.type, bounded(image.delta.type)
    if cardinality is None or not isinstance(edge, EdgeType):
        return []
    # First the sources of the input in its order, then the others by name: a stable order.
    before = image.sources_before.take(pc.sort_indices(image.sources_before))
    touched = union([image.rows.column("src"), before])
    node = images.get(f"node:{edge.source}")
    if node is not None:
        touched = without(touched, node.removed)
    if not len(touched):
        return []
    counts = _count(image.rows.column("src"), touched)
    if not image.overwrites and committed.row_count(edge.table_key):
        others = committed.lookup(edge.table_key, "src", touched, ("id", "src"))
        counts = counts + _count(image.untouched(others).column("src"), touched)
    return _findings(image, edge, touched, counts)


def _count(sources: pa.ChunkedArray, touched: pa.Array) -> npt.NDArray[np.int64]:
    places = pc.index_in(sources, value_set=touched).drop_null().to_numpy()
    return np.bincount(places, minlength=len(touched))


def _findings(
    image: TableImage,
    edge: EdgeType,
    touched: pa.Array,
    counts: npt.NDArray[np.int64],
) -> list[Finding]:
    low, high = edge.cardinality.low, edge.cardinality.high
    wrong = counts < low
    if high is not None:
        wrong |= counts > high
    places = np.flatnonzero(wrong)
    if not len(places):
        return []

    def word(index: int) -> Violation:
        source, number = touched[int(places[index])], int(counts[places[index]])
        message = out_of_bounds(edge, source.as_py(), number)
        return _blame(image, source, message)

    return [Finding(positions=places, word=word)]


def _blame(image: TableImage, source: pa.StringScalar, message: str) -> Violation:
    """The last edge of the input at this source, or none when edges were only taken away."""
    rows = image.input_rows(true_at(pc.equal(image.rows.column("src"), source)))
    if len(rows):
        return row_violation(
            image.delta, int(rows[-1]), rule="cardinality", message=message, property_name="src"
        )
    return Violation(
        rule="cardinality",
        message=message,
        entity_kind="edge",
        type_name=image.delta.type.name,
        property_name="src",
    )
