"""Bulk load against raw pylance: ratios measured in one interleaved run.

    python benchmarks/bulk_load.py [S|M|L] [rounds]

Arms, in random order each round: raw pylance writing the tables (twice: the distance of the two is
what the machine's noise looks like), a graph loading the same tables with all checks, pyarrow
parsing the JSONL and pylance writing it in series, a graph loading the JSONL. Every arm's answer is
checked: a wrong count voids the run. Peak memory is measured in a process of its own.
"""

from __future__ import annotations

import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import lance
import pyarrow as pa
import pyarrow.json

import omnigraph

sys.path.insert(0, str(Path(__file__).parent))
from dataset import SCHEMA, tables


def write_raw(data: dict[str, pa.Table], root: Path) -> int:
    for name, table in data.items():
        lance.write_dataset(table, str(root / name), data_storage_version="2.2")
    return sum(lance.dataset(str(root / name)).count_rows() for name in data)


def parse_and_write_raw(files: list[Path], root: Path) -> int:
    count = 0
    for file in files:
        table = pyarrow.json.read_json(file)
        data = table["data"].combine_chunks()
        if isinstance(data, pa.ChunkedArray):
            data = data.chunk(0)
        flat = pa.Table.from_arrays(data.flatten(), names=[f.name for f in data.type])
        if "from" in table.column_names:
            flat = flat.append_column("src", table["from"]).append_column("dst", table["to"])
        count += write_raw({file.stem: flat}, root)
    return count


def load_graph(source: object, root: Path) -> int:
    with omnigraph.init(root, SCHEMA) as graph:
        graph.load(source)
        return sum(d.entity_count for d in graph.snapshot().datasets)


def write_jsonl(data: dict[str, pa.Table], folder: Path) -> list[Path]:
    with tempfile.TemporaryDirectory() as scratch, omnigraph.init(scratch, SCHEMA) as graph:
        graph.load(data)
        files = []
        for name in data:
            files.append(folder / f"{name}.jsonl")
            with files[-1].open("wb") as out:
                graph.export(out, types=[name])
    return files


def peak_memory(arm: str, files: list[Path], nbytes: int) -> float:
    """Run one arm in a fresh process; its growth, as a multiple of the input's Arrow size."""
    done = subprocess.run(
        [sys.executable, __file__, "--memory", arm, *map(str, files)],
        capture_output=True,
        text=True,
        check=True,
    )
    return int(done.stdout.split()[-1]) / nbytes


def resident(field: str) -> int:
    """A line of this process's memory account, in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) * 1024
    raise LookupError(field)


def measure_memory(arm: str, files: list[Path]) -> None:
    folder = Path(tempfile.mkdtemp())
    try:
        load_graph([], folder / "warm")  # Libraries and thread pools are not the load's memory.
        before = resident("VmRSS")
        Path("/proc/self/clear_refs").write_text("5")  # Start a new high-water mark.
        source: object = files
        if arm == "tables":
            source = {f.stem: pa.ipc.open_file(f).read_all() for f in files}
        load_graph(source, folder / "graph")
        print(resident("VmHWM") - before)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def main(size: str, rounds: int) -> None:
    data = tables(size)
    rows = sum(t.num_rows for t in data.values())
    work = Path(tempfile.mkdtemp(prefix="omnigraph-bench-"))
    files = write_jsonl(data, work)
    text_mb = sum(f.stat().st_size for f in files) / 1e6
    arms = {
        "raw tables": lambda root: write_raw(data, root),
        "raw tables again": lambda root: write_raw(data, root),
        "graph tables": lambda root: load_graph(data, root),
        "raw jsonl": lambda root: parse_and_write_raw(files, root),
        "graph jsonl": lambda root: load_graph(files, root),
    }
    seconds: dict[str, list[float]] = {name: [] for name in arms}
    order = random.Random(1)
    for turn in range(rounds + 1):
        for name in order.sample(list(arms), len(arms)):
            root = work / "arm"
            root.mkdir()
            started = time.perf_counter()
            count = arms[name](root)
            if turn:  # The first round warms caches.
                seconds[name].append(time.perf_counter() - started)
            assert count == rows, (name, count, rows)
            shutil.rmtree(root)
    best = {name: statistics.median(values) for name, values in seconds.items()}
    print(f"size {size}: {rows:,} rows, {text_mb:.0f} MB of JSONL, median of {rounds} rounds")
    for name, value in best.items():
        print(f"  {name:18} {value:7.3f} s  {rows / value / 1e6:6.2f} M rows/s")
    noise = max(best["raw tables"], best["raw tables again"]) / min(
        best["raw tables"], best["raw tables again"]
    )
    tables_ratio = best["raw tables"] / best["graph tables"]
    jsonl_ratio = best["raw jsonl"] / best["graph jsonl"]
    print(f"  A/A spread of the raw arm              {noise:5.2f}x")
    print(f"  tables: graph / raw pylance            {tables_ratio:5.0%}   goal >= 60%")
    print(f"  JSONL:  graph / (pyarrow + pylance)    {jsonl_ratio:5.0%}   goal >= 70%")
    nbytes = sum(t.nbytes for t in data.values())
    arrow_files = []
    for name, table in data.items():
        arrow_files.append(work / f"{name}.arrow")
        with pa.ipc.new_file(arrow_files[-1], table.schema) as out:
            out.write_table(table)
    for arm, inputs in (("tables", arrow_files), ("jsonl", files)):
        ratio = peak_memory(arm, inputs, nbytes)
        print(f"  peak memory, {arm:6}                    {ratio:5.2f}x   goal < 4x")
    shutil.rmtree(work)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--memory"]:
        measure_memory(sys.argv[2], [Path(f) for f in sys.argv[3:]])
    else:
        main((sys.argv[1:] or ["M"])[0], int((sys.argv[2:] or ["5"])[0]))
