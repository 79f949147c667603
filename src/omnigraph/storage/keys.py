"""Keys for S3 that the environment does not spell out: profiles, SSO, roles.

    botocore's chain (or keys that a driver sent) -> [keys] -> obstore asks; Lance asks

Lance and obstore know chains of their own, and not the same one: obstore's has no profiles, and
Lance goes through its whole chain, a process or a server in it, for each table that it opens. So
there is one chain here, and both are given its keys, with a time until which to use them. A table
that stays open asks again before that time.
"""

from __future__ import annotations

import os
import re
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from importlib import import_module
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from omnigraph.clock import Clock, SystemClock
from omnigraph.errors import ErrorKind, OmnigraphError, StorageError

if TYPE_CHECKING:
    from obstore.store import S3Credential

LEASE_S = 600
"""Keys are good for so long after they were asked for: botocore renews what ends sooner. Those of a
file have no end that it knows, and are read again, because other programs write them there."""
SERVICE_TIMEOUT_S = 3
"""What a service that gives keys may take to be reached, and to answer."""
INSTALL = "pip install 'omnigraph[aws]'"

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NAMED_PROFILE = ("AWS_PROFILE", "AWS_DEFAULT_PROFILE")
_FILES = (
    ("AWS_SHARED_CREDENTIALS_FILE", "~/.aws/credentials"),
    ("AWS_CONFIG_FILE", "~/.aws/config"),
)
_SOURCE_OF_KEYS = re.compile(
    r"^\s*(aws_access_key_id|credential_process|sso_\w+|role_arn|login_session)\s*=", re.M
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Keys:
    """What signs requests, and until when."""

    access_key_id: str
    secret_access_key: str = field(repr=False)
    token: str | None = field(default=None, repr=False)
    expires_us: int

    def as_options(self) -> dict[str, str]:
        """For Lance, which asks for others a minute before their end."""
        options = {
            "aws_access_key_id": self.access_key_id,
            "aws_secret_access_key": self.secret_access_key,
            "expires_at_millis": str(self.expires_us // 1000),
        }
        return options | ({"aws_session_token": self.token} if self.token else {})


class KeyChain:
    """Gives keys, the same to all who ask, and others before they expire.

    A value that is sent to another process takes its keys along. That process uses them as long as
    they last, and then asks the chain of its own machine.
    """

    def __init__(
        self, given: Keys | None = None, *, session: Any = None, clock: Clock | None = None
    ) -> None:
        self._keys = given
        self._session = session
        self._clock = clock or SystemClock()
        self._source: Any = None
        self._lock = Lock()

    def __reduce__(self) -> tuple[type[KeyChain], tuple[Keys]]:
        return (KeyChain, (self.current(),))

    def __call__(self) -> S3Credential:
        """For obstore, which asks some minutes before their end."""
        keys = self.current()
        return {
            "access_key_id": keys.access_key_id,
            "secret_access_key": keys.secret_access_key,
            "token": keys.token,
            "expires_at": _EPOCH + timedelta(microseconds=keys.expires_us),
        }

    def current(self) -> Keys:
        """Keys that hold for a while. Raises ``StorageError`` if there are none."""
        with self._lock:
            now_us = self._clock.now_us()
            if self._keys is None or now_us > self._keys.expires_us - LEASE_S * 500_000:
                self._keys = self._asked(now_us)
            return self._keys

    def _asked(self, now_us: int) -> Keys:
        if self._source is None or not hasattr(self._source, "refresh_needed"):
            # Without an end: the files are read again.
            session, self._session = self._session or aws_session(os.environ), None
            with _told():
                self._source = session.get_credentials() if session is not None else None
        if self._source is None:
            raise StorageError(
                "no credentials for S3: not in the environment, in a profile or by a role",
                kind=ErrorKind.STORAGE_CONFIGURATION,
                hint="set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
            )
        with _told():
            found = self._source.get_frozen_credentials()
        expires_us = now_us + LEASE_S * 1_000_000
        # botocore keeps the end of what it renews to itself. Some last for less than a lease.
        end: datetime | None = getattr(self._source, "_expiry_time", None)
        if end is not None:
            expires_us = min(expires_us, (end - _EPOCH) // timedelta(microseconds=1))
        return Keys(
            access_key_id=found.access_key,
            secret_access_key=found.secret_key,
            token=found.token or None,
            expires_us=expires_us,
        )


def aws_session(environ: Mapping[str, str]) -> Any:
    """A session of botocore, which knows profiles and roles; None where it is not installed."""
    try:
        configs, sessions = import_module("botocore.config"), import_module("botocore.session")
    except ImportError:
        return None
    profile = _profile(environ)
    session = sessions.Session(profile=profile if profile != _profile(os.environ) else None)
    if region := environ.get("AWS_REGION"):
        session.set_config_variable("region", region)  # Unlike Lance it knows only the older name.
    # Its own patience is a minute, for each of several attempts.
    session.set_default_client_config(
        configs.Config(
            connect_timeout=SERVICE_TIMEOUT_S,
            read_timeout=SERVICE_TIMEOUT_S,
            retries={"total_max_attempts": 2},
        )
    )
    return session


def profile_settings(session: Any) -> dict[str, str]:
    """The region and the endpoint of S3 that the profile names, as it names them."""
    with _told():
        profile: dict[str, Any] = session.get_scoped_config()
        services = session.full_config.get("services", {}).get(profile.get("services"), {})
    region = profile.get("region")
    endpoint = services.get("s3", {}).get("endpoint_url") or profile.get("endpoint_url")
    found = {"AWS_REGION": region, "AWS_ENDPOINT_URL_S3": endpoint}
    return {name: str(text) for name, text in found.items() if text}


def refuse_profiles(environ: Mapping[str, str]) -> None:
    """Raise if keys are to come from where only botocore finds them, and it is not installed.

    Without it Lance and obstore use the role of the machine, the container or a web identity. A
    profile would be used by one of them and not by the other.
    """
    reason = next((name for name in _NAMED_PROFILE if environ.get(name)), None)
    for variable, usual in _FILES:
        path = environ.get(variable) or usual
        if reason is None and _SOURCE_OF_KEYS.search(_text(path)):
            reason = path
    full = "AWS_CONTAINER_CREDENTIALS_FULL_URI"
    if environ.get(full) and not environ.get("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"):
        reason = reason or full
    if reason is not None:
        raise StorageError(
            f"credentials for S3 are to come from {reason}, which needs botocore",
            kind=ErrorKind.STORAGE_CONFIGURATION,
            hint=f"{INSTALL}, or set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
        )


def _text(path: str) -> str:
    try:
        return Path(path).expanduser().read_text(errors="replace")
    except (OSError, RuntimeError):
        return ""


def _profile(environ: Mapping[str, str]) -> str | None:
    return next((environ[name] for name in _NAMED_PROFILE if environ.get(name)), None)


@contextmanager
def _told() -> Generator[None]:
    """What botocore, a program or a service of keys reports, as one error of ours."""
    try:
        yield
    except OmnigraphError:
        raise
    except Exception as e:
        words = " ".join(str(e).split())
        hint = "check AWS_PROFILE and the files that it is about"
        if "SSO" in type(e).__name__ or "SSO" in words:
            hint = "sign in again: aws sso login"
        raise StorageError(
            f"no credentials for S3: {words}", kind=ErrorKind.STORAGE_CONFIGURATION, hint=hint
        ) from e
