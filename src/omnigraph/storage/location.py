"""Where a graph lives: one value for a folder and for a bucket prefix.

    user's URI -> [location] -> objects (control objects) and tables (Lance)

Everything stored in a graph is named relative to its root, so the folder or prefix can be moved or
copied. This is the only module that knows how a root is spelled on each kind of store.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from obstore.store import AzureStore, GCSStore, LocalStore, ObjectStore, S3Store

from omnigraph.errors import ErrorKind, InternalError, StorageError, UsageError
from omnigraph.storage.keys import KeyChain
from omnigraph.storage.settings import (
    CONNECT_TIMEOUT_S,
    REQUEST_TIMEOUT_S,
    RETRIES_MAX,
    RETRY_TIMEOUT_S,
    azure_options,
    google_options,
    s3_options,
)

BUCKETS = ("s3://", "gs://", "az://")
"""How places begin that are not on this machine."""
SUPPORTED = "supported are plain paths, file://, s3://, gs:// and az://"


@dataclass(frozen=True, slots=True, kw_only=True)
class Location:
    """A graph's root."""

    uri: str
    """As shown to people."""
    lance_root: str
    """As given to Lance; a table is ``lance_root + "/" + path``."""
    manifest_prefix: str
    """What Lance puts before a graph-relative path when it reports the path of a manifest."""
    options: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """For Lance and obstore, by names that both know; empty on a local disk. They hold secrets and
    are never shown."""
    keys: KeyChain | None = field(default=None, repr=False, compare=False)
    """Where keys come from that are not among the options."""
    local_path: Path | None = None
    bucket: str = ""
    prefix: str = ""

    @property
    def is_local(self) -> bool:
        return self.local_path is not None

    @property
    def storage_options(self) -> dict[str, str] | None:
        """The options as Lance takes them now."""
        keys = self.keys.current().as_options() if self.keys is not None else {}
        return {**self.options, **keys} or None

    @property
    def identity(self) -> tuple[object, ...]:
        """Equal for places that are read alike: what is kept open for one serves the other."""
        keys = self.keys.current().access_key_id if self.keys is not None else None
        return (self.lance_root, keys, *sorted(self.options.items()))

    @property
    def address(self) -> str:
        """Where requests go, for people; empty on a local disk."""
        if self.local_path is not None:
            return ""
        match self.lance_root.partition("://")[0]:
            case "gs":
                return self.options.get("google_base_url", "https://storage.googleapis.com")
            case "az":
                account = self.options.get("azure_storage_account_name", "…")
                usual = f"https://{account}.blob.core.windows.net"
                named = ("azure_storage_endpoint", "azure_endpoint")
                return next((self.options[n] for n in named if n in self.options), usual)
            case _:
                usual = f"https://s3.{self.options.get('aws_region')}.amazonaws.com"
                return self.options.get("aws_endpoint", usual)

    def is_at(self, root: str) -> bool:
        """Whether this is where another spelling of a root leads, by links for example."""
        if root == self.table_uri("").rstrip("/"):
            return True
        try:
            return self.local_path is not None and self.local_path.samefile(root)
        except (OSError, ValueError):
            return False

    def table_uri(self, path: str) -> str:
        """The URI of a dataset below the root."""
        return f"{self.lance_root}/{path}"

    def relative(self, manifest_path: str) -> str:
        """A path as Lance reports it, relative to the root."""
        if not manifest_path.startswith(self.manifest_prefix):
            raise InternalError(f"{manifest_path} is not below {self.manifest_prefix}")
        return manifest_path.removeprefix(self.manifest_prefix)

    def absolute(self, relative_path: str) -> str:
        """The inverse of ``relative``."""
        return self.manifest_prefix + relative_path

    def connect(self, *, create: bool = False) -> ObjectStore:
        """The store of control objects, rooted here. ``create`` makes a missing local folder."""
        if self.local_path is not None:
            if create:
                try:
                    self.local_path.mkdir(parents=True, exist_ok=True)
                except OSError as e:
                    raise StorageError(
                        f"cannot create {self.uri}: {e.strerror}",
                        kind=ErrorKind.STORAGE_DENIED,
                        hint="check the path and its permissions",
                    ) from e
            return LocalStore(self.local_path, mkdir=False)
        make, prefix = _STORES[self.lance_root.partition("://")[0]]
        config: dict[str, Any] = {k: v for k, v in self.options.items() if k.startswith(prefix)}
        if self.keys is not None:
            self.keys.current()  # What is wrong with them is told here, in our words.
            config["credential_provider"] = self.keys
        return make(
            self.bucket,
            prefix=self.prefix or None,
            client_options={
                "allow_http": True,
                "connect_timeout": timedelta(seconds=CONNECT_TIMEOUT_S),
                "timeout": timedelta(seconds=REQUEST_TIMEOUT_S),
            },
            retry_config={
                "max_retries": RETRIES_MAX,
                "retry_timeout": timedelta(seconds=RETRY_TIMEOUT_S),
            },
            **config,
        )


_STORES: Mapping[str, tuple[Callable[..., Any], str]] = {
    "s3": (S3Store, "aws_"),
    "gs": (GCSStore, "google_"),
    "az": (AzureStore, "azure_"),
}
"""What reaches a bucket, and how the names of the options begin that it knows."""


def locate(uri: str | os.PathLike[str], environ: Mapping[str, str] | None = None) -> Location:
    """Read a root: a plain path, ``file://…``, or a bucket and a prefix with ``s3://`` (also
    ``gs://``, and ``az://`` with a container)."""
    if not isinstance(uri, (str, os.PathLike)):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UsageError(f"not the place of a graph: {uri!r}", hint="give a path or a URI")
    text = os.fspath(uri).strip()
    if not text:
        raise UsageError("no graph named", hint="give a folder or s3://bucket/prefix")
    if any(ord(c) < 32 or c == "\x7f" for c in text):
        raise UsageError(f"control characters in the place of a graph: {text!r}")
    scheme, separator, _ = text.partition("://")
    if not separator:
        return _local(text, text)
    match scheme:
        case "file":
            host, _, path = text.removeprefix("file://").partition("/")
            if host not in ("", "localhost"):
                raise UsageError(f"not a local file URI: {text}", hint="use file:///absolute/path")
            return _local(text, unquote("/" + path))
        case "s3" | "gs" | "az":
            return _in_bucket(scheme, text, os.environ if environ is None else environ)
        case "http" | "https":
            raise UsageError(
                f"{text} is a server address, not a storage root",
                hint="give a folder or s3://bucket/prefix",
            )
        case _:
            raise UsageError(
                f"unknown store '{scheme}://' in {text}",
                hint=SUPPORTED,
            )


def _local(uri: str, path: str) -> Location:
    try:
        # Lance reports normalised paths: `..` must not survive, while links may.
        root = os.path.abspath(Path(path).expanduser())  # noqa: PTH100
    except RuntimeError as e:
        raise UsageError(f"no such home folder: {path}") from e
    return Location(
        uri=uri,
        lance_root=root,
        manifest_prefix=root.lstrip("/") + "/",
        local_path=Path(root),
    )


def _in_bucket(scheme: str, uri: str, environ: Mapping[str, str]) -> Location:
    bucket, _, prefix = uri.removeprefix(f"{scheme}://").partition("/")
    prefix = prefix.strip("/")
    if not bucket:
        raise UsageError(f"no bucket in {uri}", hint=f"use {scheme}://bucket/prefix")
    if prefix and {"", ".", ".."} & set(prefix.split("/")):
        raise UsageError(f"not a usable prefix: {uri}", hint="leave out '//', '.' and '..'")
    keys: KeyChain | None = None
    match scheme:
        case "gs":
            options = google_options(environ)
        case "az":
            options = azure_options(environ)
        case _:
            options, keys = s3_options(environ)
    return Location(
        uri=uri,
        # Lance reads the root as a URL and decodes it; names of objects are meant literally.
        lance_root=f"{scheme}://{bucket}/{quote(prefix)}".rstrip("/"),
        manifest_prefix=f"{prefix}/" if prefix else "",
        options=options,
        keys=keys,
        bucket=bucket,
        prefix=prefix,
    )
