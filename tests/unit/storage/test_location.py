"""How a place is spelled on each kind of store, and what the environment says about it."""

from __future__ import annotations

import pytest

from omnigraph.errors import UsageError
from omnigraph.storage import settings
from omnigraph.storage.location import Location, locate
from omnigraph.storage.settings import CLIENT

KEYS = {"AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "s"}
NONE: dict[str, str] = {}


@pytest.mark.parametrize("scheme", ["s3", "gs", "az"])
def test_a_bucket_and_a_prefix(scheme: str) -> None:
    location = locate(f"{scheme}://bucket/some graphs/ü%/", KEYS)
    assert (location.bucket, location.prefix) == ("bucket", "some graphs/ü%")
    assert location.table_uri("t") == f"{scheme}://bucket/some%20graphs/%C3%BC%25/t"
    assert location.absolute("x") == "some graphs/ü%/x"
    assert not location.is_local
    assert CLIENT.items() <= location.options.items()


@pytest.mark.parametrize("scheme", ["s3", "gs", "az"])
@pytest.mark.parametrize("rest", ["", "/prefix", "bucket/a//b", "bucket/../x", "bucket/."])
def test_no_usable_place(scheme: str, rest: str) -> None:
    with pytest.raises(UsageError) as caught:
        locate(f"{scheme}://{rest}", KEYS)
    assert caught.value.hint


@pytest.mark.parametrize("name", settings._GOOGLE)
def test_what_google_is_told_is_known_to_its_client(name: str) -> None:
    """obstore refuses a name that it does not know; the value is another matter."""
    value = "true" if name.endswith("SIGNATURE") else "{}"
    options = locate("gs://bucket", {name: value, "GOOGLE_OTHER": "x"}).options
    assert options == {name.lower(): value, **CLIENT}
    known(locate("gs://bucket", {name: value}))


@pytest.mark.parametrize("name", settings._AZURE)
def test_what_azure_is_told_is_known_to_its_client(name: str) -> None:
    flags = ("SIGNATURE", "CLI", "EMULATOR")
    value = "true" if name.endswith(flags) else "a2V5"
    environ = {"AZURE_STORAGE_ACCOUNT_NAME": "a2V5", name: value}
    options = locate("az://bucket", {**environ, "AZURE_OTHER": "x"}).options
    assert options == {n.lower(): v for n, v in environ.items()} | CLIENT
    known(locate("az://bucket", environ))


def known(location: Location) -> None:
    try:
        location.connect()
    except Exception as error:
        assert "onfiguration key" not in str(error)


@pytest.mark.parametrize(
    ("uri", "environ", "address"),
    [
        ("s3://b", {**KEYS, "AWS_REGION": "eu-north-1"}, "https://s3.eu-north-1.amazonaws.com"),
        ("s3://b", {**KEYS, "AWS_ENDPOINT_URL": "http://h:1"}, "http://h:1"),
        ("gs://b", NONE, "https://storage.googleapis.com"),
        ("gs://b", {"GOOGLE_BASE_URL": "http://h:1"}, "http://h:1"),
        ("az://c", {"AZURE_STORAGE_ACCOUNT_NAME": "acc"}, "https://acc.blob.core.windows.net"),
        ("az://c", {"AZURE_STORAGE_ENDPOINT": "http://h:1/acc"}, "http://h:1/acc"),
        ("graph", NONE, ""),
    ],
)
def test_where_requests_go(uri: str, environ: dict[str, str], address: str) -> None:
    assert locate(uri, environ).address == address


def test_secrets_are_not_shown() -> None:
    environ = {**KEYS, "AWS_SECRET_ACCESS_KEY": "hush"}
    assert "hush" not in repr(locate("s3://bucket", environ))
