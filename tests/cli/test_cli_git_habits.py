"""The folder names the graph, states are counted back, a file has profiles, the shell completes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from cli_support import answer, ok, process, run

from omnigraph.cli.main import GROUPS, app
from omnigraph.cli.manpage import manpage

ROOT = Path(__file__).parents[2]
CLEAN = {"OMNIGRAPH_PROFILE": None, "OMNIGRAPH_CONFIG": None, "AWS_ENDPOINT_URL_S3": None}


@pytest.fixture
def inside(graph: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(graph)
    for name in CLEAN:
        monkeypatch.delenv(name, raising=False)
    return graph


@pytest.mark.parametrize("words", [["log"], ["status"], ["diff"], ["snapshot"], ["commit", "list"]])
def test_in_the_folder_of_a_graph_it_need_not_be_named(
    inside: Path, words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    there = ok(*words, env={"OMNIGRAPH_STORE": "."}).stdout
    assert ok(*words).stdout == there
    monkeypatch.chdir(inside / "__manifest")
    assert ok(*words).stdout.replace("..", ".") == there


def test_another_graph_is_named_in_the_folder_of_one(inside: Path, tmp_path: Path) -> None:
    schema = tmp_path / "other.pg"
    schema.write_text("node Other { k: String @key }")
    other = tmp_path / "other"
    ok("init", other, "--schema", schema)
    assert answer("snapshot", other)["datasets"][0]["type_name"] == "Other"
    assert answer("snapshot", "--store", other)["datasets"][0]["type_name"] == "Other"
    assert (
        answer("snapshot", env={"OMNIGRAPH_STORE": str(other)})["datasets"][0]["type_name"]
        == "Other"
    )


def test_outside_of_a_graph_it_has_to_be_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    refused = run("log")
    assert (refused.exit_code, "no graph is named" in refused.stderr) == (2, True)
    assert "no graph is named" in run("diff", "main", "june").stderr
    assert "no graph at ./nowhere" in run("diff", "main", "./nowhere").stderr


def test_words_beside_the_folder_are_states(inside: Path) -> None:
    ok("tag", "create", "first", "HEAD~1")
    before = json.loads(ok("diff", "first", "--json").stdout.splitlines()[0])
    assert before == json.loads(ok("diff", "HEAD~1", "main", "--json").stdout.splitlines()[0])
    assert before == json.loads(ok("diff", "main~1", inside, "--json").stdout.splitlines()[0])
    assert answer("commit", "show", "HEAD~1")["kind"] == "init"


def test_a_log_since_yesterday(inside: Path) -> None:
    assert len(answer("log", "--since", "yesterday")["commits"]) == 2
    assert answer("log", "--until", "2.weeks.ago")["commits"] == []
    assert len(answer("log", "--graph", "--limit", "1")["commits"]) == 1
    assert "leave some out" in run("log", "--graph", "--since", "today").stderr
    refused = run("log", "--since", "whenever")
    assert (refused.exit_code, "not a moment: 'whenever'" in refused.stderr) == (2, True)


# ---------------------------------------------------------------- omnigraph.toml


@pytest.fixture
def project(graph: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a file beside the graph, and a folder in it where commands run."""
    (tmp_path / "omnigraph.toml").write_text(
        f'store = "./{graph.name}"\nactor = "ann"\n'
        '[profiles.night]\nactor = "nightly"\n'
        '[profiles.far]\nstore = "s3://bucket/far"\nendpoint = "http://127.0.0.1:9"\n'
    )
    assert graph.parent == tmp_path
    (tmp_path / "sub").mkdir()
    monkeypatch.chdir(tmp_path / "sub")
    for name in CLEAN:
        monkeypatch.delenv(name, raising=False)
    return tmp_path


NEW = '{"type":"Port","data":{"code":"NEW","name":"New","berths":1}}\n'


def test_a_file_names_the_store_and_the_actor(project: Path) -> None:
    ok("load", "--data", "-", "--mode", "merge", stdin=NEW)
    assert answer("log", "--limit", "1")["commits"][0]["actor_id"] == "ann"
    ok(
        "load",
        "--data",
        "-",
        "--mode",
        "merge",
        "--profile",
        "night",
        stdin=NEW.replace("1}", "2}"),
    )
    assert answer("log", "--limit", "1")["commits"][0]["actor_id"] == "nightly"
    ok("load", "--data", "-", "--mode", "merge", "--as", "bob", stdin=NEW.replace("1}", "3}"))
    assert answer("log", "--limit", "1")["commits"][0]["actor_id"] == "bob"
    assert "OMNIGRAPH_STORE" not in os.environ and "OMNIGRAPH_ACTOR" not in os.environ


def test_a_profile_names_an_endpoint(project: Path) -> None:
    code = (
        "import os, sys\n"
        "from omnigraph.cli import profile\n"
        "import click\n"
        "with click.Context(click.Command('x')) as ctx:\n"
        "    profile.apply_profile(ctx, None, 'far')\n"
        "    print(os.environ['OMNIGRAPH_STORE'], os.environ['AWS_ENDPOINT_URL_S3'])\n"
        "print('AWS_ENDPOINT_URL_S3' in os.environ)\n"
    )
    done = process(code=code)
    assert done.stdout.decode().splitlines()[:2] == ["s3://bucket/far http://127.0.0.1:9", "False"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("store = ", "is no TOML"),
        ("stoer = 'x'", "unknown setting 'stoer'"),
        ("store = 1", "'store' is no text"),
        ("store = ''", "'store' is no text"),
        ("profiles = 1", "'profiles' is no table"),
        ("", "no profile 'night'"),
        ("\udcff", "is no TOML"),
    ],
)
def test_a_file_that_is_wrong_is_named(project: Path, text: str, said: str) -> None:
    (project / "omnigraph.toml").write_bytes(text.encode(errors="surrogateescape"))
    words = ["log", "--profile", "night"] if "night" in said else ["log"]
    refused = run(*words)
    assert refused.exit_code == 2
    assert said in refused.stderr and "omnigraph.toml" in refused.stderr


def test_a_file_as_editors_of_windows_write_it(project: Path) -> None:
    path = project / "omnigraph.toml"
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))
    assert len(answer("log")["commits"]) == 2


def test_a_profile_without_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    refused = run("log", "--profile", "night")
    assert (refused.exit_code, "there is no omnigraph.toml" in refused.stderr) == (2, True)
    refused = run("log", env={"OMNIGRAPH_CONFIG": "nowhere.toml"})
    assert (refused.exit_code, "nowhere.toml: No such file" in refused.stderr) == (2, True)


# ---------------------------------------------------------------- help, completion, the manual


def test_the_help_is_grouped_and_names_every_command_once() -> None:
    shown = ok("--help").stdout
    listed = [
        line.split()[0]
        for line in shown.splitlines()
        if line.startswith("  ") and line[2:3].isalpha()
    ]
    for title, commands in GROUPS.items():
        assert f"\n{title}:\n" in shown
        for command in commands:
            assert listed.count(str(command.name)) == 1, command.name
    assert {str(c.name) for group in GROUPS.values() for c in group} == set(app.commands)


@pytest.mark.parametrize(
    ("shell", "place"),
    [
        ("bash", ".local/share/bash-completion/completions/omnigraph"),
        ("zsh", ".zfunc/_omnigraph"),
        ("fish", ".config/fish/completions/omnigraph.fish"),
    ],
)
def test_completion_is_installed_by_a_command(shell: str, place: str, tmp_path: Path) -> None:
    env = {"HOME": str(tmp_path), "XDG_DATA_HOME": None, "XDG_CONFIG_HOME": None}
    done = ok("completion", "install", env={**env, "SHELL": f"/bin/{shell}"})
    assert str(tmp_path / place) in done.stdout and "Next: " in done.stdout
    assert (tmp_path / place).read_text() == ok("completion", "show", shell).stdout
    assert "_OMNIGRAPH_COMPLETE" in (tmp_path / place).read_text()
    again = answer("completion", "install", shell, env=env)
    assert (again["shell"], again["path"]) == (shell, str(tmp_path / place))


def test_completion_needs_a_shell_that_it_knows_and_a_place(tmp_path: Path) -> None:
    assert "the shell 'csh'" in run("completion", "install", env={"SHELL": "/bin/csh"}).stderr
    assert "no shell is named" in run("completion", "install", env={"SHELL": None}).stderr
    (tmp_path / ".zfunc").write_text("")
    refused = run("completion", "install", "zsh", env={"HOME": str(tmp_path)})
    assert refused.exit_code == 1 and ".zfunc" in refused.stderr


def test_the_shell_is_given_commands_and_options() -> None:
    env = os.environ | {"_OMNIGRAPH_COMPLETE": "bash_complete", "PYTHONPATH": str(ROOT / "src")}
    for words, found in (("omnigraph lo", "plain,log"), ("omnigraph log --si", "plain,--since")):
        done = subprocess.run(
            [sys.executable, "-m", "omnigraph.cli.entry"],
            env=env | {"COMP_WORDS": words, "COMP_CWORD": str(len(words.split()) - 1)},
            capture_output=True,
            text=True,
        )
        assert found in done.stdout.splitlines(), done.stderr


def test_the_manual_page_is_up_to_date_and_names_every_command() -> None:
    text = manpage()
    assert (ROOT / "docs/reference/omnigraph.1").read_text(encoding="utf-8") == text, (
        "run: python -m omnigraph.cli.manpage > docs/reference/omnigraph.1"
    )
    for name in app.commands:
        assert f".B omnigraph {name} " in text, name
    assert text.startswith(".TH OMNIGRAPH 1")
