"""Asking a person before something is done that cannot be undone."""

from __future__ import annotations

import sys

import click

from omnigraph.cli.exits import FAILURE
from omnigraph.cli.settings import Settings
from omnigraph.cli.streams import is_terminal
from omnigraph.errors import UsageError


def can_ask(settings: Settings) -> bool:
    """Whether there is a person to answer."""
    return not settings.json and is_terminal(sys.stdin)


def ask(settings: Settings, question: str) -> None:
    """End the command unless the answer is yes."""
    if not click.confirm(question, err=True):
        settings.output.notice("nothing was changed")
        raise click.exceptions.Exit(FAILURE)


def needs_yes(what: str, why: str) -> UsageError:
    """Nobody can be asked, and it was not said beforehand."""
    return UsageError(f"{what} needs --yes", hint=why)
