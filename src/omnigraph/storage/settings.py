"""What the environment says about a store, as options for Lance and obstore.

    environment (and the AWS profile) -> [settings] -> options of a location, keys of a location

Options have the names that both libraries know. They travel with a location, so that processes
that a driver starts reach the same store.
"""

from __future__ import annotations

from collections.abc import Mapping
from threading import Lock
from urllib.parse import urlsplit

from omnigraph.errors import UsageError
from omnigraph.storage.keys import KeyChain, aws_session, profile_settings, refuse_profiles

REQUEST_TIMEOUT_S = 30
CONNECT_TIMEOUT_S = 1.5
"""Five attempts of this, and the waits between them, are over within ten seconds."""
RETRIES_MAX = 4
RETRY_TIMEOUT_S = 90

_GOOGLE = (
    "GOOGLE_SERVICE_ACCOUNT",
    "GOOGLE_SERVICE_ACCOUNT_PATH",
    "GOOGLE_SERVICE_ACCOUNT_KEY",
    "GOOGLE_APPLICATION_CREDENTIALS",
    "GOOGLE_BEARER_TOKEN",
    "GOOGLE_BASE_URL",
    "GOOGLE_SKIP_SIGNATURE",
)
_AZURE = (
    "AZURE_STORAGE_ACCOUNT_NAME",
    "AZURE_STORAGE_ACCOUNT_KEY",
    "AZURE_STORAGE_ACCESS_KEY",
    "AZURE_STORAGE_SAS_TOKEN",
    "AZURE_STORAGE_SAS_KEY",
    "AZURE_STORAGE_TOKEN",
    "AZURE_STORAGE_CLIENT_ID",
    "AZURE_STORAGE_CLIENT_SECRET",
    "AZURE_STORAGE_TENANT_ID",
    "AZURE_CLIENT_ID",
    "AZURE_CLIENT_SECRET",
    "AZURE_TENANT_ID",
    "AZURE_AUTHORITY_HOST",
    "AZURE_FEDERATED_TOKEN_FILE",
    "AZURE_MSI_ENDPOINT",
    "AZURE_IDENTITY_ENDPOINT",
    "AZURE_OBJECT_ID",
    "AZURE_MSI_RESOURCE_ID",
    "AZURE_USE_AZURE_CLI",
    "AZURE_SKIP_SIGNATURE",
    "AZURE_STORAGE_ENDPOINT",
    "AZURE_ENDPOINT",
    "AZURE_STORAGE_USE_EMULATOR",
)

CLIENT = {
    "allow_http": "true",
    "client_max_retries": str(RETRIES_MAX),
    "client_retry_timeout": str(RETRY_TIMEOUT_S),
    "connect_timeout": f"{CONNECT_TIMEOUT_S}s",
    "timeout": f"{REQUEST_TIMEOUT_S}s",
}
"""How Lance's client behaves, on every kind of store."""


def google_options(environ: Mapping[str, str]) -> dict[str, str]:
    """The usual GOOGLE_* variables; what is unset is left to the libraries."""
    return _said(environ, _GOOGLE) | CLIENT


def azure_options(environ: Mapping[str, str]) -> dict[str, str]:
    """The usual AZURE_* variables; what is unset is left to the libraries."""
    return _said(environ, _AZURE) | CLIENT


def s3_options(environ: Mapping[str, str]) -> tuple[dict[str, str], KeyChain | None]:
    """Endpoint and keys from the usual AWS_* variables, else from what they lead to.

    The second is a chain of keys when the environment does not hold them itself. None without
    keys in the first: the libraries find the role of the machine by themselves.
    """
    options = _said(environ, ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"))
    options |= _said(environ, ("AWS_SKIP_SIGNATURE",))
    chain: KeyChain | None = None
    if not options:
        found, chain = _chain(environ)
        environ = {**found, **{name: text for name, text in environ.items() if text}}
    options["aws_region"] = (
        environ.get("AWS_REGION") or environ.get("AWS_DEFAULT_REGION") or "us-east-1"
    )
    endpoint = environ.get("AWS_ENDPOINT_URL_S3") or environ.get("AWS_ENDPOINT_URL")
    if endpoint:
        options["aws_endpoint"] = _address("S3", endpoint, "AWS_ENDPOINT_URL_S3")
    # Path style works on every server; only AWS itself is asked in its preferred style.
    force = environ.get("AWS_S3_FORCE_PATH_STYLE", "true" if endpoint else "false")
    options["aws_virtual_hosted_style_request"] = str(force.lower() in ("0", "false", "no")).lower()
    return options | CLIENT, chain


_chains: dict[tuple[tuple[str, str], ...], tuple[dict[str, str], KeyChain | None]] = {}
_lock = Lock()


def _chain(environ: Mapping[str, str]) -> tuple[dict[str, str], KeyChain | None]:
    """One chain for a process and what its environment says: keys are asked for once.

    With it come the settings of its profile.
    """
    key = tuple(sorted((n, v) for n, v in environ.items() if n.startswith("AWS_") or n == "HOME"))
    with _lock:
        if key not in _chains:
            session = aws_session(environ)
            if session is None:
                refuse_profiles(environ)
                return {}, None
            settings = profile_settings(session)
            if environ.get("AWS_DEFAULT_REGION"):
                settings.pop("AWS_REGION", None)
            if environ.get("AWS_ENDPOINT_URL"):
                settings.pop("AWS_ENDPOINT_URL_S3", None)
            _chains[key] = settings, KeyChain(session=session)
        return _chains[key]


def _said(environ: Mapping[str, str], names: tuple[str, ...]) -> dict[str, str]:
    return {name.lower(): environ[name] for name in names if environ.get(name)}


def _address(store: str, endpoint: str, variable: str) -> str:
    parts = urlsplit(endpoint)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UsageError(
            f"the {store} endpoint is not an address: {endpoint!r}",
            hint=f"set {variable} to something like http://127.0.0.1:9000",
        )
    return endpoint
