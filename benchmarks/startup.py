"""What a command costs that does next to nothing: CPU seconds of whole processes.

    python benchmarks/startup.py [rounds]

Every arm is a process of its own; user and system time are counted, so other work on the machine
disturbs little. The arms take turns and the best of all rounds stands. `import lance` is the floor
of whoever reads Lance tables in Python; it imports pandas where that is installed. Peers open a
database of one row and ask for it. Modules are compiled once, into a folder of the run, as an
installation does.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from timing import Report, table

SRC = Path(__file__).parents[1] / "src"
SCHEMA = "node Person { name: String @key age: I32? }\n"
ROW = '{"type": "Person", "data": {"name": "a", "age": 1}}\n'
FLOOR = 'python -c "import lance"'
BARE = "the same without pandas"
_BARE = """
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name == "pandas":
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Missing())
import lance
"""
INSTANT_S = 0.1
COMMAND_MAX = 1.4
METADATA_MAX = 1.2
METADATA = ("branch list", "commit list", "status")

PEERS = {
    "duckdb": (
        "import duckdb; c = duckdb.connect('{db}')",
        "c.execute('create table p (name varchar)'); c.execute(\"insert into p values ('a')\")",
        "c.execute('select name from p').fetchall()",
    ),
    "kuzu": (
        "import kuzu; c = kuzu.Connection(kuzu.Database('{db}'))",
        "c.execute('create node table P(name string, primary key(name))'); "
        "c.execute(\"create (:P {{name: 'a'}})\")",
        "c.execute('match (p:P) return p.name').get_all()",
    ),
    "lancedb": (
        "import lancedb; c = lancedb.connect('{db}')",
        "c.create_table('p', [{{'name': 'a'}}])",
        "c.open_table('p').search().limit(1).to_list()",
    ),
}
"""Opening a database, making it, asking it."""


def cpu_s(command: Sequence[str], env: Mapping[str, str]) -> float:
    """Seconds of user and system time of one process."""
    process = subprocess.Popen(
        command, env=dict(env), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    said = process.stderr.read()
    _, status, used = os.wait4(process.pid, 0)
    # It has been waited for: Popen must not do so again.
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{said}")
    return used.ru_utime + used.ru_stime


def commands(place: Path, env: Mapping[str, str]) -> dict[str, list[str]]:
    """Our commands, on a graph of one row that is made here."""
    ours = [sys.executable, "-m", "omnigraph"]
    graph, rows, schema = str(place / "graph"), str(place / "rows.jsonl"), place / "schema.pg"
    schema.write_text(SCHEMA)
    Path(rows).write_text(ROW)
    load = [*ours, "load", graph, "--data", rows, "--mode", "merge"]
    cpu_s([*ours, "init", graph, "--schema", str(schema)], env)
    cpu_s(load, env)
    update = 'update Person set { age: 2 } where name = "a"'
    return {
        "--version": [*ours, "--version"],
        "--help": [*ours, "--help"],
        "branch list": [*ours, "branch", "list", graph],
        "commit list": [*ours, "commit", "list", graph],
        "status": [*ours, "status", graph],
        "query": [*ours, "query", graph, "-e", "match { $p: Person } return { $p.name }"],
        "mutate": [*ours, "mutate", graph, "-e", update],
        "load": load,
    }


def peers(place: Path, env: Mapping[str, str]) -> dict[str, list[str]]:
    """Peers that are installed, each with its row."""
    found: dict[str, list[str]] = {}
    for name, steps in PEERS.items():
        if importlib.util.find_spec(name) is None:
            print(f"  {name}: not installed")
            continue
        opened, made, asked = (step.format(db=place / name) for step in steps)
        cpu_s([sys.executable, "-c", f"{opened}; {made}"], env)
        found[name] = [sys.executable, "-c", f"{opened}; {asked}"]
    return found


def main(rounds: int) -> None:
    report = Report()
    with tempfile.TemporaryDirectory(prefix="omnigraph-bench-") as folder:
        place = Path(folder)
        env = {**os.environ, "PYTHONPATH": str(SRC), "PYTHONPYCACHEPREFIX": str(place / "compiled")}
        env.pop("PYTHONDONTWRITEBYTECODE", None)
        arms = {
            "python": [sys.executable, "-c", "pass"],
            FLOOR: [sys.executable, "-c", "import lance"],
            BARE: [sys.executable, "-c", _BARE],
            **commands(place, env),
            **peers(place, env),
        }
        seconds: dict[str, list[float]] = {name: [] for name in arms}
        for turn in range(rounds + 1):
            for name, command in arms.items():
                used = cpu_s(command, env)
                if turn:  # The first round compiles, and fills the system's caches.
                    seconds[name].append(used)
    best = {name: min(values) for name, values in seconds.items()}
    floor = best[FLOOR]
    print(f"CPU seconds of a process, the best of {rounds}")
    rows = [[name, f"{value:.3f}", f"{value / floor:.2f}x"] for name, value in best.items()]
    table(["", "s", "of import lance"], rows)
    report.figures["cpu_s"] = best
    for name in ("--version", "--help"):
        report.goal(name, best[name], INSTANT_S, " s")
    for name in ("branch list", "commit list", "status", "query", "mutate", "load"):
        limit = METADATA_MAX if name in METADATA else COMMAND_MAX
        report.goal(f"{name} / import lance", best[name] / floor, limit)


if __name__ == "__main__":
    main(int((sys.argv[1:] or ["7"])[0]))
