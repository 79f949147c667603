"""Results as notebooks show them."""

from __future__ import annotations

import pyarrow as pa

from omnigraph.results import QueryResult
from omnigraph.tabular import HTML_ROWS_MAX


def _result(table: pa.Table) -> QueryResult:
    return QueryResult(table, query_name=None, branch="main", commit_id="C", manifest_version=1)


def test_a_notebook_shows_a_table_with_everything_escaped() -> None:
    html = _result(pa.table({"<name>": ["<script>", None], "n": [1, 2]}))._repr_html_()
    assert html == (
        "<table><thead><tr><th>&lt;name&gt;</th><th>n</th></tr></thead><tbody>"
        "<tr><td>&lt;script&gt;</td><td>1</td></tr><tr><td></td><td>2</td></tr></tbody></table>"
    )


def test_a_notebook_shows_the_first_rows_and_counts_the_rest() -> None:
    html = _result(pa.table({"n": range(HTML_ROWS_MAX + 5)}))._repr_html_()
    assert html.count("<tr>") == HTML_ROWS_MAX + 1
    assert html.endswith("<p>… and 5 more rows</p>")


def test_no_rows() -> None:
    html = _result(pa.table({"n": pa.array([], pa.int64())}))._repr_html_()
    assert "<tbody></tbody>" in html
