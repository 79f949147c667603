"""Where a graph lives: one value for a folder and for a bucket prefix.

    user's URI -> [location] -> objects (control objects) and tables (Lance)

Everything stored in a graph is named relative to its root, so the folder or prefix can be moved or
copied. This is the only module that knows how a root is spelled on each kind of store.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

from obstore.store import LocalStore, ObjectStore, S3Store

from omnigraph.errors import ErrorKind, InternalError, StorageError, UsageError

REQUEST_TIMEOUT_S = 30
CONNECT_TIMEOUT_S = 5
RETRIES_MAX = 4
RETRY_TIMEOUT_S = 90


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
    """Lance storage options; empty on a local disk. They hold secrets and are never shown."""
    local_path: Path | None = None
    bucket: str = ""
    prefix: str = ""

    @property
    def is_local(self) -> bool:
        return self.local_path is not None

    @property
    def storage_options(self) -> dict[str, str] | None:
        """The options as Lance takes them."""
        return dict(self.options) or None

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
        return S3Store(
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
            **{k: v for k, v in self.options.items() if k.startswith("aws_")},  # pyright: ignore[reportArgumentType]
        )


def locate(uri: str | os.PathLike[str], environ: Mapping[str, str] | None = None) -> Location:
    """Read a root: a plain path, ``file://…`` or ``s3://bucket/prefix``."""
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
        case "s3":
            return _s3(text, os.environ if environ is None else environ)
        case "http" | "https":
            raise UsageError(
                f"{text} is a server address, not a storage root",
                hint="give a folder or s3://bucket/prefix",
            )
        case _:
            raise UsageError(
                f"unknown store '{scheme}://' in {text}",
                hint="supported are plain paths, file:// and s3://",
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


def _s3(uri: str, environ: Mapping[str, str]) -> Location:
    bucket, _, prefix = uri.removeprefix("s3://").partition("/")
    prefix = prefix.strip("/")
    if not bucket:
        raise UsageError(f"no bucket in {uri}", hint="use s3://bucket/prefix")
    if prefix and {"", ".", ".."} & set(prefix.split("/")):
        raise UsageError(f"not a usable prefix: {uri}", hint="leave out '//', '.' and '..'")
    return Location(
        uri=uri,
        # Lance reads the root as a URL and decodes it; names of objects are meant literally.
        lance_root=f"s3://{bucket}/{quote(prefix)}".rstrip("/"),
        manifest_prefix=f"{prefix}/" if prefix else "",
        options=_s3_options(environ),
        bucket=bucket,
        prefix=prefix,
    )


def _s3_options(environ: Mapping[str, str]) -> dict[str, str]:
    """Credentials and endpoint from the usual AWS_* variables; what is unset is left to the SDK."""
    options = {
        name.lower(): environ[name]
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
        if environ.get(name)
    }
    options["aws_region"] = (
        environ.get("AWS_REGION") or environ.get("AWS_DEFAULT_REGION") or "us-east-1"
    )
    endpoint = environ.get("AWS_ENDPOINT_URL_S3") or environ.get("AWS_ENDPOINT_URL")
    if endpoint:
        if urlsplit(endpoint).scheme not in ("http", "https") or not urlsplit(endpoint).hostname:
            raise UsageError(
                f"the S3 endpoint is not an address: {endpoint!r}",
                hint="set AWS_ENDPOINT_URL_S3 to something like http://127.0.0.1:9000",
            )
        options["aws_endpoint"] = endpoint
    # Path style works on every server; only AWS itself is asked in its preferred style.
    force = environ.get("AWS_S3_FORCE_PATH_STYLE", "true" if endpoint else "false")
    options["aws_virtual_hosted_style_request"] = str(force.lower() in ("0", "false", "no")).lower()
    options |= {
        "allow_http": "true",
        "client_max_retries": str(RETRIES_MAX),
        "client_retry_timeout": str(RETRY_TIMEOUT_S),
        "connect_timeout": f"{CONNECT_TIMEOUT_S}s",
        "timeout": f"{REQUEST_TIMEOUT_S}s",
    }
    return options
