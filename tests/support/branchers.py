"""What racing processes do to branches: each step is one that many may try at once."""

from __future__ import annotations

from omnigraph.api import graph as graphs

NAMES = ("x", "y", "z")


def churn(graph: graphs.Graph, name: str, i: int, type_name: str) -> str | None:
    """Make, write, merge, rename or end one of a few branches that everybody fights over."""
    seed = sum(map(ord, name)) + i * 7
    branch = NAMES[seed % 3]
    match seed % 6:
        case 0:
            graph.branches.create(branch, NAMES[(seed + 1) % 3] if seed % 2 else "main")
        case 1:
            graph.branches.delete(branch)
        case 2:
            graph.branches.rename(branch, NAMES[(seed + 1) % 3])
        case 3:
            graph.merge(branch, into=NAMES[(seed + 1) % 3], actor=name, delete_branch=seed % 4 == 0)
        case _:
            return scribble(graph, name, i, type_name, branch)
    return None


def scribble(
    graph: graphs.Graph, name: str, i: int, type_name: str, branch: str = "x"
) -> str | None:
    """Commit one node on a branch; says which commit in which life of it."""
    row = {"type": type_name, "data": {"name": f"{name}-{i}"}}
    commit = graph.load([row], branch=branch, actor=name, message=f"{name}-{i}").commit
    return f"{commit.path} {commit.id}" if commit is not None else None
