"""Who signs requests to S3: the identity of every AWS tool, the same for Lance and obstore.

The server is a real one, and so are its temporary keys. A proxy sees which key signed a request.
"""

from __future__ import annotations

import hashlib
import json
import pickle
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import obstore
import pytest

import omnigraph
from omnigraph.errors import ErrorKind, StorageError
from omnigraph.storage import keys as keys_module
from omnigraph.storage.keys import LEASE_S, KeyChain, Keys
from omnigraph.storage.location import locate
from omnigraph.storage.settings import s3_options
from omnigraph.testing.http1 import Fault
from omnigraph.testing.proxy import CountingProxy
from omnigraph.testing.s3 import ROLE, S3Server
from support.key_server import KeyServer

SCHEMA = """
node Person { name: String @key  age: I32?  note: Blob? }
edge Knows: Person -> Person { since: I32? }
"""


@dataclass
class Place:
    """A bucket behind a proxy, and a home without anything of this machine."""

    root: str
    home: Path
    server: S3Server
    proxy: CountingProxy
    giver: KeyServer
    set: Callable[[str, str], None]

    def profile(self, text: str, *, name: str = "work") -> None:
        """A config file with one profile, which is the chosen one."""
        self.home.joinpath("config").write_text(f"[profile {name}]\n{text}\n")
        self.set("AWS_PROFILE", name)

    def process(self) -> None:
        """A profile whose keys a program writes: those that the giver has at that moment."""
        script = (
            "import sys, urllib.request, json\n"
            "found = json.load(urllib.request.urlopen(sys.argv[1]))\n"
            "print(json.dumps({'Version': 1, 'SessionToken': found.pop('Token'), **found}))\n"
        )
        self.home.joinpath("give.py").write_text(script)
        self.profile(
            f"credential_process = {sys.executable} {self.home / 'give.py'} {self.giver.address}/k"
        )

    @property
    def signers(self) -> set[str | None]:
        return {request.signer for request in self.proxy.requests}


@pytest.fixture
def place(
    s3_server: S3Server,
    s3_proxy: CountingProxy,
    s3_proxied_root: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Place]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(home / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(home / "credentials"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    # It has looked for the home folder when it was imported.
    cache = str(home / ".aws" / "sso" / "cache")
    monkeypatch.setattr("botocore.credentials.SSOProvider._SSO_TOKEN_CACHE_DIR", cache)
    with KeyServer(s3_server.temporary_keys()) as giver:
        yield Place(
            root=s3_proxied_root,
            home=home,
            server=s3_server,
            proxy=s3_proxy,
            giver=giver,
            set=monkeypatch.setenv,
        )


def in_the_environment(place: Place) -> str:
    place.set("AWS_ACCESS_KEY_ID", place.giver.keys.access_key)
    place.set("AWS_SECRET_ACCESS_KEY", place.giver.keys.secret_key)
    place.set("AWS_SESSION_TOKEN", place.giver.keys.token)
    return place.giver.keys.access_key


def in_a_file(place: Place) -> str:
    text = (
        f"[default]\naws_access_key_id = {place.server.access_key}\n"
        f"aws_secret_access_key = {place.server.secret_key}\n"
    )
    place.home.joinpath("credentials").write_text(text)
    return place.server.access_key


def in_a_named_profile(place: Place) -> str:
    in_a_file(place)
    place.home.joinpath("credentials").write_text(
        f"[work]\naws_access_key_id = {place.giver.keys.access_key}\n"
        f"aws_secret_access_key = {place.giver.keys.secret_key}\n"
        f"aws_session_token = {place.giver.keys.token}\n"
    )
    place.set("AWS_PROFILE", "work")
    return place.giver.keys.access_key


def by_a_program(place: Place) -> str:
    place.process()
    return place.giver.keys.access_key


def by_a_role(place: Place) -> str:
    """A role that the S3 server itself lends to who has the keys of another profile."""
    in_a_file(place)
    place.set("AWS_ENDPOINT_URL_STS", place.server.endpoint)
    place.profile(f"role_arn = {ROLE}\nsource_profile = default")
    return "ASIA"


def by_a_container(place: Place) -> str:
    place.set("AWS_CONTAINER_CREDENTIALS_FULL_URI", f"{place.giver.address}/container")
    return place.giver.keys.access_key


def by_a_web_identity(place: Place) -> str:
    place.home.joinpath("token").write_text("signed by somebody")
    place.set("AWS_WEB_IDENTITY_TOKEN_FILE", str(place.home / "token"))
    place.set("AWS_ROLE_ARN", ROLE)
    place.set("AWS_ENDPOINT_URL_STS", place.giver.address)
    return place.giver.keys.access_key


def signed_in(place: Place, *, until: str = "2999-01-01T00:00:00Z") -> None:
    """A profile of SSO, for which somebody signed in."""
    start = "https://start.example"
    cache = place.home / ".aws" / "sso" / "cache"
    cache.mkdir(parents=True)
    token = {"accessToken": "t", "expiresAt": until, "startUrl": start, "region": "us-east-1"}
    name = hashlib.sha1(start.encode()).hexdigest()
    cache.joinpath(f"{name}.json").write_text(json.dumps(token))
    place.set("AWS_ENDPOINT_URL_SSO", place.giver.address)
    place.profile(
        f"sso_start_url = {start}\nsso_region = us-east-1\n"
        "sso_account_id = 123456789012\nsso_role_name = tests"
    )


def by_sso(place: Place) -> str:
    signed_in(place)
    return place.giver.keys.access_key


@pytest.mark.parametrize(
    "identity",
    [
        in_the_environment,
        in_a_file,
        in_a_named_profile,
        by_a_program,
        by_a_role,
        by_a_container,
        by_a_web_identity,
        by_sso,
    ],
)
def test_lance_and_obstore_sign_with_the_keys_of_one_identity(
    place: Place, identity: Callable[[Place], str]
) -> None:
    expected = identity(place)
    lines = [json.dumps({"type": "Person", "data": {"name": n}}) for n in ("b", "c")]
    obstore.put(locate(place.root).connect(), "in/rows.jsonl", "\n".join(lines).encode())
    with omnigraph.init(f"{place.root}/g", SCHEMA) as graph:
        graph.load([{"type": "Person", "data": {"name": "a", "note": "base64:AAAA"}}])
        graph.load(f"{place.root}/in/*.jsonl")
        graph.mutate('insert Knows { from: "a"  to: "b"  since: 2 }')
    with omnigraph.open(f"{place.root}/g") as graph:
        found = graph.query("match { $a: Person  $a knows $b } return { $a.name, $b.name }")
        assert found.to_dicts() == [{"a.name": "a", "b.name": "b"}]
        assert graph.snapshot().count("Person") == 3
        graph.optimize()
    (signer,) = place.signers
    assert str(signer).startswith(expected)


@pytest.mark.parametrize("source", [by_a_program, by_a_container, by_a_web_identity])
def test_a_handle_goes_on_when_its_keys_expire(
    place: Place, source: Callable[[Place], str]
) -> None:
    """Its tables and its store were opened with keys that the server takes no more."""
    place.giver.lasting_s = 30
    source(place)
    old = place.giver.keys
    with omnigraph.init(f"{place.root}/g", SCHEMA) as graph:
        graph.load([{"type": "Person", "data": {"name": n, "note": "base64:AAAA"}} for n in "abc"])
        earlier = graph.snapshot()
        new = place.giver.keys = place.server.temporary_keys()
        place.giver.lasting_s = 3600
        # The client of obstore asks again a tenth of a second after it asked the last time.
        while new.access_key not in place.signers:
            graph.snapshot()
        place.proxy.reset()
        place.proxy.fail(
            Fault.STATUS, status=403, when=lambda r: r.signer == old.access_key, times=None
        )
        assert earlier.count("Person") == 3
        assert len(list(earlier.rows("Person"))) == 3
        graph.mutate('update Person set { age: 3 } where name = "a"')
        graph.load([{"edge": "Knows", "from": "a", "to": "b", "data": {}}])
        graph.branches.create("side")
        graph.load([{"type": "Person", "data": {"name": "d"}}], branch="side")
        graph.merge("side")
        graph.optimize()
        graph.build_indexes()
        found = graph.query("match { $a: Person  $a knows $b } return { $a.age, $b.name }")
        assert found.to_dicts() == [{"a.age": 3, "b.name": "b"}]
    assert place.signers == {new.access_key}


def test_keys_are_asked_for_once_in_a_process(place: Place) -> None:
    by_a_container(place)
    with omnigraph.init(f"{place.root}/g", SCHEMA) as graph:
        graph.load([{"type": "Person", "data": {"name": "a"}}])
    with omnigraph.open(f"{place.root}/g") as graph:
        assert graph.snapshot().count("Person") == 1
    # Once to know that there are some, and once for the keys.
    assert len(place.giver.asked) <= 2


def test_a_profile_names_region_and_endpoint(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ENDPOINT_URL_S3", "AWS_REGION"):
        monkeypatch.delenv(name)
    place.profile(
        f"aws_access_key_id = {place.server.access_key}\n"
        f"aws_secret_access_key = {place.server.secret_key}\n"
        f"region = eu-north-1\nendpoint_url = {place.proxy.endpoint}"
    )
    assert locate(place.root).options["aws_region"] == "eu-north-1"
    omnigraph.init(f"{place.root}/g", SCHEMA).close()
    assert place.signers == {place.server.access_key}
    # The environment comes first.
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-west-2")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    options = locate(place.root).options
    assert (options["aws_region"], options["aws_endpoint"]) == ("us-west-2", "http://127.0.0.1:1")


# -- what cannot be used ---------------------------------------------------------------------------


def failing_program(place: Place) -> None:
    place.profile("credential_process = /bin/sh -c 'echo no ticket >&2; exit 3'")


def expired_sign_in(place: Place) -> None:
    signed_in(place, until="2001-01-01T00:00:00Z")


@pytest.mark.parametrize(
    ("prepare", "says", "hint"),
    [
        (lambda place: None, "not in the environment", "AWS_PROFILE"),
        (lambda place: place.set("AWS_PROFILE", "nobody"), "nobody", "AWS_PROFILE"),
        (failing_program, "no ticket", "AWS_PROFILE"),
        (expired_sign_in, "SSO", "aws sso login"),
    ],
    ids=["nothing", "no such profile", "program fails", "sign-in expired"],
)
def test_an_identity_that_cannot_be_had(
    place: Place, prepare: Callable[[Place], None], says: str, hint: str
) -> None:
    prepare(place)
    with pytest.raises(StorageError) as caught:
        omnigraph.open(f"{place.root}/g")
    assert caught.value.kind is ErrorKind.STORAGE_CONFIGURATION
    assert caught.value.message.startswith("no credentials for S3: ")
    assert says in caught.value.message
    assert hint in (caught.value.hint or "")


@pytest.mark.parametrize("source", [in_a_named_profile, in_a_file, by_a_program, by_a_container])
def test_without_botocore_profiles_are_refused(
    place: Place, source: Callable[[Place], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lance would use the profile, and obstore the role of the machine."""
    source(place)
    monkeypatch.setitem(sys.modules, "botocore.session", None)
    with pytest.raises(StorageError) as caught:
        omnigraph.open(f"{place.root}/g")
    assert caught.value.kind is ErrorKind.STORAGE_CONFIGURATION
    assert "needs botocore" in caught.value.message
    assert "omnigraph[aws]" in (caught.value.hint or "")


def test_without_botocore_roles_of_the_machine_are_left_to_the_libraries(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_a_web_identity(place)
    place.home.joinpath("config").write_text("[default]\nregion = eu-north-1\n")
    monkeypatch.setitem(sys.modules, "botocore.session", None)
    options, chain = s3_options(dict(keys_module.os.environ))
    assert chain is None
    assert "aws_access_key_id" not in options


# -- keys on their way -----------------------------------------------------------------------------


def test_a_place_takes_its_keys_to_another_process(place: Place) -> None:
    by_a_program(place)
    sent = pickle.dumps(locate(place.root))
    # There is no profile there.
    place.set("AWS_PROFILE", "elsewhere")
    place.home.joinpath("config").write_text("")
    there = pickle.loads(sent)
    assert there.identity == pickle.loads(sent).identity
    assert there.storage_options["aws_access_key_id"] == place.giver.keys.access_key
    assert there.storage_options["aws_session_token"] == place.giver.keys.token
    obstore.put(there.connect(), "x", b"x")
    assert place.signers == {place.giver.keys.access_key}


def test_keys_that_came_along_and_expired_make_way_for_those_of_the_machine(place: Place) -> None:
    in_a_file(place)
    clock = FixedClock(1_000_000_000)
    sent = Keys(access_key_id="theirs", secret_access_key="s", expires_us=2_000_000_000)
    chain = KeyChain(sent, clock=clock)
    assert chain.current().access_key_id == "theirs"
    clock.us = 1_900_000_000
    assert chain.current().access_key_id == place.server.access_key


def test_a_file_that_another_program_writes_is_read_again(place: Place) -> None:
    in_a_file(place)
    clock = FixedClock(0)
    chain = KeyChain(clock=clock)
    assert chain.current().access_key_id == place.server.access_key
    in_a_named_profile(place)
    assert chain.current().access_key_id == place.server.access_key
    clock.us = LEASE_S * 1_000_000
    assert chain.current().access_key_id == place.giver.keys.access_key


def test_secrets_are_not_shown(place: Place) -> None:
    by_a_program(place)
    location = locate(place.root)
    assert location.keys is not None
    shown = repr(location) + repr(location.keys.current())
    assert place.giver.keys.secret_key not in shown
    assert place.giver.keys.token not in shown


@dataclass
class FixedClock:
    us: int

    def now_us(self) -> int:
        return self.us

    def monotonic_s(self) -> float:
        return self.us / 1e6

    def sleep(self, seconds: float) -> None:
        self.us += int(seconds * 1e6)
