"""Bulk load against raw pylance: ratios measured in one interleaved run.

    python benchmarks/bulk_load.py [S|M|L|XL] [rounds] [--only tables|edges|jsonl]
        [--scratch FOLDER]

Arms, in random order each round: raw pylance writing the tables (twice: the distance of the two is
what the machine's noise looks like), a graph loading the same tables with all checks; the same of
edges that come without ids to nodes that are committed, where raw pylance writes the finished
tables; pyarrow parsing the JSONL and pylance writing it in series, a graph loading the JSONL. Every
arm's answer is checked: a wrong count voids the run. Each arm is told in seconds and in CPU seconds
of all threads: on a busy machine the second ratio is the steadier one. Peak memory is measured in a
process of its own.

XL is made and loaded in parts of ten million edges, into the same tables and the same graph.
"""

from __future__ import annotations

import argparse
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pyarrow.json

import omnigraph
from omnigraph.ids import SystemIds

sys.path.insert(0, str(Path(__file__).parent))
from dataset import SCHEMA, SIZES, batches, tables

GOALS = {"tables": 55, "edges": 55, "jsonl": 70}
MEMORY_GOAL = 3


@dataclass
class Spent:
    """Seconds and CPU seconds of one arm, round by round."""

    wall: list[float] = field(default_factory=list[float])
    cpu: list[float] = field(default_factory=list[float])

    def run(self, work: Callable[[], Any]) -> Any:
        wall, cpu = time.perf_counter(), time.process_time()
        done = work()
        self.wall.append(time.perf_counter() - wall)
        self.cpu.append(time.process_time() - cpu)
        return done


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


def split(data: dict[str, pa.Table]) -> tuple[dict[str, pa.Table], ...]:
    """Nodes, edges without ids, and the same edges with such ids as a graph draws for them."""
    nodes = {name: table for name, table in data.items() if "src" not in table.column_names}
    bare = {name: t.drop_columns(["id"]) for name, t in data.items() if name not in nodes}
    drawn = {name: SystemIds().ulids(table.num_rows) for name, table in bare.items()}
    return nodes, bare, {name: t.add_column(0, "id", drawn[name]) for name, t in bare.items()}


def load_more(source: object, root: Path) -> int:
    with omnigraph.open(root) as graph:
        before = sum(d.entity_count for d in graph.snapshot().datasets)
        graph.load(source)
        return sum(d.entity_count for d in graph.snapshot().datasets) - before


def write_jsonl(data: dict[str, pa.Table], folder: Path) -> list[Path]:
    with tempfile.TemporaryDirectory(dir=folder) as scratch, omnigraph.init(scratch, SCHEMA) as g:
        g.load(data)
        files = []
        for name in data:
            files.append(folder / f"{name}.jsonl")
            with files[-1].open("wb") as out:
                g.export(out, types=[name])
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


def resident(field_name: str) -> int:
    """A line of this process's memory account, in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field_name):
            return int(line.split()[1]) * 1024
    raise LookupError(field_name)


def measure_memory(arm: str, files: list[Path]) -> None:
    folder = Path(tempfile.mkdtemp(dir=files[0].parent))
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


def at_once(size: str, rounds: int, kinds: list[str], work: Path) -> None:
    """All arms on data that is made once."""
    data = tables(size)
    every = sum(t.num_rows for t in data.values())
    nbytes = sum(t.nbytes for t in data.values())
    nodes, bare, finished = split(data)
    rows = dict.fromkeys(kinds, every)
    arms: dict[str, Callable[[Path], int]] = {}
    if "tables" in kinds:
        arms["raw tables"] = lambda root: write_raw(data, root)
        arms["raw tables again"] = lambda root: write_raw(data, root)
        arms["graph tables"] = lambda root: load_graph(data, root)
    if "edges" in kinds:
        rows["edges"] = sum(t.num_rows for t in bare.values())
        arms["raw edges"] = lambda root: write_raw(finished, root)
        arms["raw edges again"] = lambda root: write_raw(finished, root)
        arms["graph edges"] = lambda root: load_more(bare, root)
    files: list[Path] = []
    if "jsonl" in kinds:
        files = write_jsonl(data, work)
        arms["raw jsonl"] = lambda root: parse_and_write_raw(files, root)
        arms["raw jsonl again"] = lambda root: parse_and_write_raw(files, root)
        arms["graph jsonl"] = lambda root: load_graph(files, root)
    text_mb = sum(f.stat().st_size for f in files) / 1e6
    spent = {name: Spent() for name in arms}
    order = random.Random(1)
    for turn in range(rounds + 1):
        for name in order.sample(list(arms), len(arms)):
            root = work / "arm"
            root.mkdir()
            if name == "graph edges":
                load_graph(nodes, root)
            # The first round warms caches.
            one = spent[name] if turn else Spent()
            count = one.run(lambda name=name, root=root: arms[name](root))
            assert count == rows[kind_of(name)], (name, count, rows)
            shutil.rmtree(root)
    print(
        f"size {size}: {every:,} rows, {nbytes / 1e6:.0f} MB of Arrow, {text_mb:.0f} MB of JSONL, "
        f"median of {rounds} rounds"
    )
    tell(spent, rows, kinds)
    arrow_files = []
    for name, table in data.items():
        arrow_files.append(work / f"{name}.arrow")
        with pa.ipc.new_file(arrow_files[-1], table.schema) as out:
            out.write_table(table)
    for kind in (kind for kind in kinds if kind != "edges"):
        inputs = arrow_files if kind == "tables" else files
        ratio = peak_memory(kind, inputs, nbytes)
        print(
            f"  peak memory, {kind:6}                 {ratio:5.2f}x   goal <= {MEMORY_GOAL}x at L"
        )


def in_parts(size: str, work: Path) -> None:
    """Raw and graph take turns with parts of a data set that does not fit into memory."""
    spent = {name: Spent() for name in ("raw tables", "graph tables")}
    rows = 0
    with omnigraph.init(work / "graph", SCHEMA) as graph:
        for number, part in enumerate(batches(size)):
            own = {name: Spent() for name in spent}
            arms: dict[str, Callable[[], object]] = {
                "raw tables": lambda part=part: append_raw(part, work),
                "graph tables": lambda part=part: graph.load(part, mode="append"),
            }
            for name in list(arms)[:: 1 if number % 2 else -1]:
                own[name].run(arms[name])
                spent[name].wall += own[name].wall
                spent[name].cpu += own[name].cpu
            rows += (count := sum(t.num_rows for t in part.values()))
            took = ", ".join(f"{name} {one.wall[0]:.2f} s" for name, one in own.items())
            print(f"  {'/'.join(part)}: {count:,} rows, {took}", flush=True)
        found = sum(d.entity_count for d in graph.snapshot().datasets)
        assert found == rows, (found, rows)
    totals = {n: Spent(wall=[sum(s.wall)], cpu=[sum(s.cpu)]) for n, s in spent.items()}
    print(f"size {size}: {rows:,} rows, the sum of all parts")
    tell(totals, {"tables": rows}, ["tables"])


def append_raw(part: dict[str, pa.Table], root: Path) -> None:
    for name, table in part.items():
        mode = "append" if (root / name).exists() else "create"
        lance.write_dataset(table, str(root / name), data_storage_version="2.2", mode=mode)


def kind_of(arm: str) -> str:
    return arm.split()[1]


def tell(spent: dict[str, Spent], rows: dict[str, int], kinds: list[str]) -> None:
    wall = {name: statistics.median(one.wall) for name, one in spent.items()}
    cpu = {name: statistics.median(one.cpu) for name, one in spent.items()}
    for name, value in wall.items():
        speed = rows[kind_of(name)] / value / 1e6
        print(f"  {name:18} {value:7.3f} s  {speed:6.2f} M rows/s  {cpu[name]:7.3f} s of CPU")
    for kind in kinds:
        raw, again, graph = f"raw {kind}", f"raw {kind} again", f"graph {kind}"
        if again in wall:
            noise = max(wall[raw], wall[again]) / min(wall[raw], wall[again])
            print(f"  A/A spread of raw {kind:6}               {noise:5.2f}x")
        share, busy = wall[raw] / wall[graph], cpu[raw] / cpu[graph]
        goal = f"goal >= {GOALS[kind]}%"
        print(f"  {kind:6} graph / raw                     {share:5.0%}   {goal}, CPU {busy:5.0%}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("size", nargs="?", choices=list(SIZES))
    parser.add_argument("rounds", nargs="?", type=int, default=5)
    parser.add_argument("--size", dest="named", choices=list(SIZES))
    parser.add_argument("--only", choices=list(GOALS))
    parser.add_argument("--scratch", help="where graphs and files are made and removed")
    asked = parser.parse_args()
    size = asked.named or asked.size or "M"
    work = Path(tempfile.mkdtemp(prefix="omnigraph-bench-", dir=asked.scratch))
    try:
        if size == "XL":
            in_parts(size, work)
        else:
            at_once(size, asked.rounds, [asked.only] if asked.only else list(GOALS), work)
    finally:
        shutil.rmtree(work)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--memory"]:
        measure_memory(sys.argv[2], [Path(f) for f in sys.argv[3:]])
    else:
        main()
