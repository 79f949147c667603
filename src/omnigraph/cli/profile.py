"""What a command need not be told: the folder it runs in, and `omnigraph.toml`.

    --profile -> [profile] -> the store, the actor and the endpoint, where nothing else names them

The file lies in the current folder or in one above it, or where OMNIGRAPH_CONFIG says:

    store = "./fleet"
    actor = "alice"

    [profiles.production]
    store = "s3://harbour/fleet"
    endpoint = "https://objects.example.org"
    region = "eu-north-1"

What stands at the top holds in every profile. What it says comes last: after the command line, the
environment and, for the store, the graph whose folder the command runs in.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import click

from omnigraph.errors import UsageError

FILE = "omnigraph.toml"
CONFIG_VARIABLE = "OMNIGRAPH_CONFIG"
PROFILE_VARIABLE = "OMNIGRAPH_PROFILE"
STORE_VARIABLE = "OMNIGRAPH_STORE"
ACTOR_VARIABLE = "OMNIGRAPH_ACTOR"
VARIABLES = {
    "store": STORE_VARIABLE,
    "actor": ACTOR_VARIABLE,
    "endpoint": "AWS_ENDPOINT_URL_S3",
    "region": "AWS_REGION",
}
"""What a profile may say, and the variable that says the same."""
_MANIFEST = "__manifest"
"""The folder that every graph has (docs/format.md)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfiguredValues:
    """What a file says, with the name of the file for messages."""

    path: Path
    values: dict[str, str]


def is_graph(folder: Path) -> bool:
    """Whether a folder is a graph."""
    try:
        return (folder / _MANIFEST).is_dir()
    except OSError:  # It may not be entered.
        return False


def graph_here() -> str | None:
    """The graph in whose folder the command runs, if there is one."""
    for up, folder in enumerate(_upwards()):
        if is_graph(folder):
            return str(Path(*[os.pardir] * up))
    return None


def apply_profile(ctx: click.Context, param: click.Parameter, value: str | None) -> None:
    """An eager callback: options that come after it see what the profile says."""
    if ctx.resilient_parsing:
        return
    profile = read_profile(value)
    if profile is None:
        return
    said = dict(profile.values)
    if value is None and graph_here() is not None:
        said.pop("store", None)
    for name, text in said.items():
        if VARIABLES[name] not in os.environ:
            os.environ[VARIABLES[name]] = text
            # One process may run several commands, in tests for example.
            ctx.call_on_close(_removal(VARIABLES[name]))


def _removal(variable: str) -> Callable[[], None]:
    return lambda: cast("None", os.environ.pop(variable, None))


def read_profile(name: str | None) -> ConfiguredValues | None:
    """The profile of this name, or what holds without one; None if there is no file."""
    path = _config_path()
    if path is None:
        if name is None:
            return None
        raise UsageError(
            f"no profile '{name}': there is no {FILE} here or above",
            hint=f"write one, or name it in {CONFIG_VARIABLE}",
        )
    document = _document(path)
    profiles = document.pop("profiles", {})
    if not isinstance(profiles, dict):
        raise _wrong(path, "'profiles' is no table", "a profile is a table: [profiles.NAME]")
    found: dict[str, Any] = document
    if name is not None:
        chosen = cast("dict[str, Any]", profiles).get(name)
        if not isinstance(chosen, dict):
            known = ", ".join(sorted(cast("dict[str, Any]", profiles))) or "none"
            raise _wrong(path, f"no profile '{name}'", f"it has: {known}")
        found |= cast("dict[str, Any]", chosen)
    return ConfiguredValues(path=path, values=_checked(path, found))


def _checked(path: Path, found: dict[str, Any]) -> dict[str, str]:
    for name, value in found.items():
        if name not in VARIABLES:
            raise _wrong(path, f"unknown setting '{name}'", f"it may say {', '.join(VARIABLES)}")
        if not isinstance(value, str) or not value.strip() or "\0" in value:
            raise _wrong(path, f"'{name}' is no text", f'for example: {name} = "…"')
    if (store := found.get("store")) and "://" not in store:
        # Beside the file, wherever the command runs.
        found["store"] = os.path.relpath(path.parent / Path(store).expanduser())
    return cast("dict[str, str]", found)


def _document(path: Path) -> dict[str, Any]:
    import tomllib

    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as e:
        raise _wrong(path, e.strerror or str(e), f"{CONFIG_VARIABLE} may name another") from e
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as e:
        raise _wrong(path, f"is no TOML: {e}", 'a line is: name = "value"') from e


def _wrong(path: Path, what: str, hint: str) -> UsageError:
    return UsageError(f"{path}: {what}", hint=hint)


def _config_path() -> Path | None:
    if said := os.environ.get(CONFIG_VARIABLE):
        return Path(said)
    for up, folder in enumerate(_upwards()):
        path = folder / FILE
        try:
            if path.is_file():
                return Path(*[os.pardir] * up, FILE)
        except OSError:
            continue
    return None


def _upwards() -> list[Path]:
    try:
        here = Path.cwd()
    except OSError:  # The folder was removed.
        return []
    return [here, *here.parents]
