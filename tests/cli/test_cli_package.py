"""The package is light until it is used: `import omnigraph` costs the command line nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli_support import process

import omnigraph


def test_every_public_name_is_there_and_listed() -> None:
    for name in omnigraph.__all__:
        assert getattr(omnigraph, name) is not None
    assert set(omnigraph.__all__) <= set(dir(omnigraph))


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="nope"):
        omnigraph.nope  # noqa: B018


def test_names_are_imported_when_they_are_used() -> None:
    code = (
        "import sys, omnigraph\n"
        "assert 'lance' not in sys.modules and 'pyarrow' not in sys.modules\n"
        "omnigraph.init\n"
        "assert 'lance' in sys.modules\n"
        "from omnigraph import *\n"
        "assert Graph.__module__ == 'omnigraph.api.graph'\n"
    )
    result = process(code=code)
    assert (result.returncode, result.stderr) == (0, b"")


def test_a_pipe_needs_no_colours_and_the_version_no_engine(graph: Path) -> None:
    code = (
        "import sys\n"
        "from omnigraph.cli.main import main\n"
        "try: main()\n"
        "finally: print(sorted({'lance', 'pyarrow', 'rich'} & set(sys.modules)))"
    )
    for args in (["--version"], ["--help"], ["branch", "list", "--help"], ["version"]):
        assert process(*args, code=code).stdout.decode().splitlines()[-1] == "[]", args
    listed = process("commit", "list", graph, code=code).stdout.decode().splitlines()
    assert listed[-1] == "['lance', 'pyarrow']"
