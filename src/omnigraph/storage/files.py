"""The files of one version of a table, as its manifest names them."""

from __future__ import annotations

from collections.abc import Iterator

from lance import LanceDataset


def data_files(path: str, dataset: LanceDataset) -> Iterator[str]:
    """Data and deletion files, from the root. A data file stands for its blobs, too."""
    for fragment in dataset.get_fragments():
        metadata = fragment.metadata
        for file in metadata.files:
            yield f"{path}/data/{file.path}"
        if metadata.deletion_file is not None:
            yield f"{path}/{metadata.deletion_file.path(metadata.id)}"


def index_folders(path: str, dataset: LanceDataset) -> Iterator[str]:
    """The folder of every part of an index, from the root."""
    for index in dataset.describe_indices():
        for segment in index.segments:
            yield f"{path}/_indices/{segment.uuid}"
