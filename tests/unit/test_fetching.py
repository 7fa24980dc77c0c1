"""Fetching a file: whole or not at all, continued where it broke off, and the same the next time."""

import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
from pydantic import SecretStr

from producer.fetching.addresses import Address, read_address
from producer.fetching.at_hand import at_hand
from producer.fetching.cache import Entry, entry_of
from producer.fetching.download import Patience
from producer.fetching.errors import FetchError, WrongHashError
from producer.fetching.fetcher import Fetcher
from producer.fetching.hub import Hub
from tests.file_server import NETWORK, Fault, FileServer, Watching, file_server, sha256

CONTENT = bytes(range(256)) * 1000
TOKEN = "hf_token-that-nobody-may-see"  # noqa: S105 - what must not be printed
HUB_FILE = "hf://datasets/someone/corpus@refs%2Fconvert%2Fparquet/default/train/0000.parquet"


@pytest.fixture
def server() -> Iterator[FileServer]:
    """A server of one file."""
    with file_server() as running:
        running.content = CONTENT
        yield running


@pytest.fixture
def address(server: FileServer) -> Address:
    """Where the file is; what follows the question mark is secret."""
    return read_address(f"{server.base_url}/data/rows.jsonl?key=secret-in-the-query")


@pytest.fixture
def watch() -> Watching:
    """What was told."""
    return Watching()


@pytest.fixture
def fetcher(tmp_path: Path, watch: Watching) -> Fetcher:
    """A fetcher into an empty cache, which waits for nothing."""
    patience = Patience(tries=3, first_wait_s=0)
    return Fetcher(cache=tmp_path / "cache", hub=Hub(), watch=watch, patience=patience, transport=NETWORK)


@pytest.fixture
def entry(fetcher: Fetcher, address: Address) -> Entry:
    """The file's place in the cache."""
    return entry_of(fetcher.cache, address)


def begin(fetcher: Fetcher, address: Address, server: FileServer, *faults: Fault) -> None:
    """Fetch until the faults let it end in the middle of the file, and forget what was asked."""
    server.faults = [*faults, *(Fault(status=503) for _ in range(fetcher.patience.tries))]
    with pytest.raises(FetchError):
        fetcher(address)
    server.faults.clear()
    server.received.clear()


def test_a_file_comes_whole_under_its_own_name_with_a_record(
    fetcher: Fetcher, server: FileServer, address: Address, entry: Entry, watch: Watching
) -> None:
    fetched = fetcher(address)

    assert (fetched.path.name, fetched.path.read_bytes()) == ("rows.jsonl", CONTENT)
    assert (fetched.bytes, fetched.sha256, fetched.pinned) == (len(CONTENT), sha256(CONTENT), False)
    record = json.loads(entry.record.read_text("utf-8"))
    assert (record["bytes"], record["sha256"], record["etag"]) == (len(CONTENT), sha256(CONTENT), server.etag)
    assert record["address"] == f"{server.base_url}/data/rows.jsonl"
    assert watch.seen[0] == (0, len(CONTENT))
    assert watch.seen[-1] == (len(CONTENT), len(CONTENT))
    assert (len(watch.begun), [done.sha256 for done in watch.done]) == (1, [sha256(CONTENT)])
    assert server.received[0].headers["accept-encoding"] == "identity"
    assert sorted(path.name for path in entry.folder.iterdir()) == [
        *("rows.jsonl", "rows.jsonl.lock", "rows.jsonl.record.json"),
    ]


def test_a_file_that_is_there_is_asked_of_nobody(fetcher: Fetcher, server: FileServer, address: Address) -> None:
    first = fetcher(address)
    server.received.clear()

    assert fetcher(address) == first == at_hand(fetcher.cache, address)
    assert server.received == []


def test_what_breaks_off_goes_on_from_where_it_was(
    fetcher: Fetcher, server: FileServer, address: Address, watch: Watching
) -> None:
    server.faults = [Fault(cut=100_000), Fault(cut=50_000)]

    assert fetcher(address).path.read_bytes() == CONTENT
    assert server.ranges == [None, "bytes=100000-", "bytes=150000-"]
    assert {request.headers.get("if-range") for request in server.received[1:]} == {server.etag}
    assert len(watch.reasons) == 2
    assert (150_000, len(CONTENT)) in watch.seen


def test_the_next_run_asks_only_for_the_rest(
    fetcher: Fetcher, server: FileServer, address: Address, entry: Entry
) -> None:
    begin(fetcher, address, server, Fault(cut=100_000))
    assert not entry.file.exists()

    assert fetcher(address).path.read_bytes() == CONTENT
    assert server.ranges == ["bytes=100000-"]


def test_a_file_is_continued_by_its_date_where_there_is_no_better_mark(
    fetcher: Fetcher, server: FileServer, address: Address
) -> None:
    server.etag = 'W/"weak"'
    server.faults = [Fault(cut=100_000)]

    assert fetcher(address).path.read_bytes() == CONTENT
    assert [request.headers.get("if-range") for request in server.received] == [None, server.modified]


@pytest.mark.parametrize("date", [None, "Tue, 04 Aug 2026 10:00:01 GMT", "soon"])
def test_without_a_mark_that_can_be_trusted_a_file_starts_over(
    fetcher: Fetcher, server: FileServer, address: Address, date: str | None
) -> None:
    server.etag = None
    server.faults = [Fault(cut=100_000, headers={"Date": date} if date else {"Last-Modified": "yesterday"})]

    assert fetcher(address).path.read_bytes() == CONTENT
    assert server.ranges == [None, None]


@pytest.mark.parametrize("deaf", [False, True], ids=["the server says so", "the server continues with other bytes"])
def test_a_file_that_changed_meanwhile_starts_over_and_is_whole(
    fetcher: Fetcher, server: FileServer, address: Address, deaf: bool
) -> None:
    begin(fetcher, address, server, Fault(cut=100_000))
    server.content, server.etag, server.modified = CONTENT[::-1], '"two"', "Tue, 04 Aug 2026 10:30:00 GMT"
    server.faults = [Fault(deaf=deaf)]

    assert fetcher(address).path.read_bytes() == CONTENT[::-1]
    assert server.ranges == ["bytes=100000-", *([None] if deaf else [])]


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(Fault(whole=True), id="no heed to the range"),
        pytest.param(Fault(status=416), id="no such range"),
        pytest.param(Fault(start=99_999), id="another range"),
        pytest.param(Fault(headers={"Content-Range": "bytes 100000-255999/256001"}), id="another size"),
        pytest.param(Fault(headers={"Content-Range": "bytes -5-7/-9"}), id="a range of nonsense"),
        pytest.param(Fault(headers={"ETag": '"three"'}), id="another mark"),
    ],
)
def test_an_answer_that_does_not_continue_the_file_spoils_nothing(
    fetcher: Fetcher, server: FileServer, address: Address, fault: Fault
) -> None:
    begin(fetcher, address, server, Fault(cut=100_000))
    server.faults = [fault]

    assert fetcher(address).path.read_bytes() == CONTENT
    assert server.ranges[0] == "bytes=100000-"


def test_what_is_whole_already_is_not_asked_for_again(
    fetcher: Fetcher, server: FileServer, address: Address, entry: Entry
) -> None:
    begin(fetcher, address, server, Fault(cut=100_000))
    entry.unfinished.write_bytes(CONTENT)

    assert fetcher(address).sha256 == sha256(CONTENT)
    assert server.received == []


@pytest.mark.parametrize("promises", [len(CONTENT) + 10, 10**17, -5], ids=["too much", "absurdly much", "nonsense"])
def test_a_file_of_the_wrong_size_never_becomes_the_file(
    fetcher: Fetcher, server: FileServer, address: Address, entry: Entry, promises: int
) -> None:
    server.faults = [Fault(promises=promises) for _ in range(10)]

    with pytest.raises(FetchError) as raised:
        fetcher(address)

    assert not entry.file.exists()
    assert not entry.record.exists()
    assert "\n" not in str(raised.value)


def test_what_came_of_a_file_that_cannot_be_had_whole_is_told(
    fetcher: Fetcher, server: FileServer, address: Address
) -> None:
    server.faults = [Fault(cut=100_000), *(Fault(status=503) for _ in range(3))]

    with pytest.raises(FetchError) as raised:
        fetcher(address)

    assert str(raised.value) == (
        f"{server.base_url}/data/rows.jsonl could not be fetched: the server answers with status 503; "
        "100,000 of 256,000 bytes are there, and the same command goes on from there"
    )


def test_more_than_was_promised_starts_over(
    fetcher: Fetcher, server: FileServer, address: Address, watch: Watching
) -> None:
    begin(fetcher, address, server, Fault(cut=100_000))
    told = {"Content-Range": "bytes 100000-255999/256000"}
    server.faults = [Fault(start=90_000, headers=told)]

    assert fetcher(address).path.read_bytes() == CONTENT
    assert "more than the 256,000 bytes that were promised came; trying again" in watch.reasons


@pytest.mark.parametrize("status", [500, 503, 429, 408])
def test_what_may_pass_is_asked_again(fetcher: Fetcher, server: FileServer, address: Address, status: int) -> None:
    server.faults = [Fault(status=status), Fault(status=status)]

    assert fetcher(address).sha256 == sha256(CONTENT)
    assert len(server.received) == 3


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410, 204, 304])
def test_what_does_not_pass_is_asked_once_and_says_what_to_look_at(
    fetcher: Fetcher, server: FileServer, address: Address, status: int
) -> None:
    server.faults = [Fault(status=status)]

    with pytest.raises(FetchError, match=f"rows.jsonl is refused with status {status}; mend the address, or") as no:
        fetcher(address)

    assert len(server.received) == 1
    assert "secret" not in str(no.value)


def test_tries_that_bring_something_are_not_counted(fetcher: Fetcher, server: FileServer, address: Address) -> None:
    server.faults = [Fault(cut=20_000) for _ in range(12)]

    assert fetcher(address).path.read_bytes() == CONTENT


def test_nobody_at_the_address_is_an_error_with_what_to_do(fetcher: Fetcher) -> None:
    with pytest.raises(
        FetchError, match=r"could not be fetched: the connection failed .*; the same command tries again"
    ):
        fetcher(read_address("http://127.0.0.1:9/rows.jsonl"))


def test_a_web_page_is_no_data_file(fetcher: Fetcher, server: FileServer, address: Address) -> None:
    server.faults = [Fault(headers={"Content-Type": "text/html; charset=utf-8"})]

    with pytest.raises(FetchError, match="is a web page and not a file"):
        fetcher(address)


def test_a_file_that_is_packed_on_the_way_is_refused(fetcher: Fetcher, server: FileServer, address: Address) -> None:
    server.faults = [Fault(headers={"Content-Encoding": "br"})]

    with pytest.raises(FetchError, match="its server packs it as 'br'"):
        fetcher(address)


def test_a_file_with_the_hash_that_the_study_names_is_taken(fetcher: Fetcher, address: Address) -> None:
    assert fetcher(address, sha256(CONTENT)).pinned


def test_a_file_with_another_hash_never_becomes_the_file_and_is_fetched_anew(
    fetcher: Fetcher, server: FileServer, address: Address, entry: Entry
) -> None:
    with pytest.raises(WrongHashError) as raised:
        fetcher(address, sha256(b"another"))

    assert sha256(CONTENT) in str(raised.value)
    assert sha256(b"another") in str(raised.value)
    assert [path.name for path in entry.folder.iterdir()] == ["rows.jsonl.lock"]
    server.content = b"another"
    assert fetcher(address, sha256(b"another")).path.read_bytes() == b"another"


def test_a_file_of_another_study_stays_until_the_right_one_is_there(
    fetcher: Fetcher, server: FileServer, address: Address
) -> None:
    fetcher(address)
    with pytest.raises(WrongHashError):
        fetcher(address, sha256(b"another"))
    assert at_hand(fetcher.cache, address) is not None
    assert at_hand(fetcher.cache, address, sha256(b"another")) is None

    server.content = b"another"
    fetched = fetcher(address, sha256(b"another"))

    assert (fetched.path.read_bytes(), fetched.before) == (b"another", sha256(CONTENT))


def test_a_file_that_was_changed_in_the_cache_is_refused_until_it_is_deleted(
    fetcher: Fetcher, address: Address, entry: Entry
) -> None:
    fetcher(address)
    entry.file.write_bytes(b"tampered with")

    for use in (fetcher, lambda one: at_hand(fetcher.cache, one)):
        with pytest.raises(WrongHashError) as raised:
            use(address)
        assert str(raised.value).startswith(f"{entry.file} is not as it was fetched on ")
        assert sha256(CONTENT) in str(raised.value)
    entry.file.unlink()
    assert fetcher(address).path.read_bytes() == CONTENT


@pytest.mark.parametrize("record", ["", "{}", '{"bytes": -1}', "no JSON", "[]"])
def test_a_file_without_a_record_that_can_be_read_is_fetched_anew(
    fetcher: Fetcher, server: FileServer, address: Address, entry: Entry, record: str
) -> None:
    fetcher(address)
    entry.record.write_text(record, encoding="utf-8")

    assert at_hand(fetcher.cache, address) is None
    assert fetcher(address).sha256 == sha256(CONTENT)
    assert len(server.received) == 2


def test_an_unfinished_file_whose_record_was_spoilt_starts_over(
    fetcher: Fetcher, server: FileServer, address: Address, entry: Entry
) -> None:
    begin(fetcher, address, server, Fault(cut=100_000))
    entry.unfinished_record.write_text('{"etag": "spo', encoding="utf-8")

    assert fetcher(address).path.read_bytes() == CONTENT
    assert server.ranges == [None]


def test_a_cache_that_cannot_be_written_to_says_which_variable_names_another(
    tmp_path: Path, fetcher: Fetcher, address: Address
) -> None:
    (tmp_path / "cache").write_text("a file where the folder should be", encoding="utf-8")

    with pytest.raises(FetchError, match=r"cannot be written to: .*; name another folder with BOTHWAYS_CACHE"):
        fetcher(address)


def test_of_two_that_want_one_file_one_fetches_and_the_other_waits(
    fetcher: Fetcher, server: FileServer, address: Address, entry: Entry, watch: Watching
) -> None:
    results = []
    with entry.locked(lambda: None):
        waiting = threading.Thread(target=lambda: results.append(fetcher(address)))
        waiting.start()
        until(lambda: bool(watch.reasons))
        assert server.received == []
        other = Fetcher(cache=fetcher.cache.parent / "other", hub=Hub(), watch=Watching(), transport=NETWORK)(address)
        theirs = entry_of(fetcher.cache.parent / "other", address)
        theirs.file.rename(entry.file)
        theirs.record.rename(entry.record)
    waiting.join(10)

    assert watch.reasons == ["another process fetches rows.jsonl"]
    assert [done.sha256 for done in results] == [other.sha256]
    assert len(server.received) == 1


def until(done: Callable[[], bool]) -> None:
    """Wait for something that comes soon."""
    ended = threading.Event()
    for _ in range(500):
        if done():
            return
        ended.wait(0.01)
    raise AssertionError("it did not come")


def test_redirections_are_followed(fetcher: Fetcher, server: FileServer, address: Address) -> None:
    server.faults = [Fault(to="/elsewhere"), Fault(to=f"{server.base_url}/further?sig=1", status=307)]

    assert fetcher(address).path.name == "rows.jsonl"
    assert [request.path.partition("?")[0] for request in server.received] == [
        *("/data/rows.jsonl", "/elsewhere", "/further"),
    ]


@pytest.mark.parametrize(
    ("to", "said"),
    [
        ("/data/rows.jsonl", "redirects without an end"),
        ("file:///etc/passwd", "is no address"),
        ("http://[", "no addr"),
    ],
)
def test_a_redirection_to_nowhere_is_refused(
    fetcher: Fetcher, server: FileServer, address: Address, to: str, said: str
) -> None:
    server.faults = [Fault(to=to) for _ in range(20)]

    with pytest.raises(FetchError, match=said):
        fetcher(address)


def transport(*answers: httpx.Response) -> httpx.MockTransport:
    """A network that answers so."""
    left = list(answers)
    return httpx.MockTransport(lambda _: left.pop(0))


def test_a_redirection_never_leads_from_https_to_http(tmp_path: Path, watch: Watching) -> None:
    network = transport(httpx.Response(302, headers={"Location": "http://example.org/rows.jsonl"}))
    fetcher = Fetcher(cache=tmp_path, hub=Hub(), watch=watch, transport=network)

    with pytest.raises(FetchError, match="redirects from https to http"):
        fetcher(read_address("https://example.org/rows.jsonl"))


def test_the_token_is_shown_to_the_hub_alone_and_stands_nowhere(
    tmp_path: Path, server: FileServer, watch: Watching, capsys: pytest.CaptureFixture[str]
) -> None:
    with file_server() as elsewhere:
        elsewhere.content = CONTENT
        hub = Hub.of({"HF_ENDPOINT": server.base_url, "HF_TOKEN": TOKEN})
        server.faults = [Fault(to="/cached"), Fault(to=f"{elsewhere.base_url}/signed")]
        fetcher = Fetcher(cache=tmp_path, hub=hub, watch=watch, transport=NETWORK)
        address = read_address(HUB_FILE)

        fetched = fetcher(address)

        assert fetched.path.read_bytes() == CONTENT
        assert [request.path for request in server.received] == [
            "/datasets/someone/corpus/resolve/refs%2Fconvert%2Fparquet/default/train/0000.parquet",
            "/cached",
        ]
        assert {request.headers["authorization"] for request in server.received} == {f"Bearer {TOKEN}"}
        assert [request.headers.get("authorization") for request in elsewhere.received] == [None]
    kept = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert TOKEN.encode() not in kept
    assert TOKEN not in f"{fetcher} {fetched} {watch.__dict__} {capsys.readouterr()}"


def test_the_token_is_shown_to_no_other_address(tmp_path: Path, server: FileServer, address: Address) -> None:
    hub = Hub(endpoint=server.base_url, token=SecretStr(TOKEN))

    Fetcher(cache=tmp_path, hub=hub, watch=Watching(), transport=NETWORK)(address)

    assert "authorization" not in server.received[0].headers


def test_a_file_of_the_hub_that_needs_a_token_says_so(tmp_path: Path, server: FileServer) -> None:
    hub = Hub(endpoint=server.base_url, token=SecretStr(TOKEN))
    server.faults = [Fault(status=401)]

    with pytest.raises(FetchError, match="is refused with status 401; set HF_TOKEN") as raised:
        Fetcher(cache=tmp_path, hub=hub, watch=Watching(), transport=NETWORK)(read_address(HUB_FILE))

    assert TOKEN not in str(raised.value)


@pytest.mark.parametrize(
    "environment", [{"HF_ENDPOINT": "huggingface.co"}, {"HF_TOKEN": "two\nlines"}, {"HF_TOKEN": "tökèn"}]
)
def test_a_hub_that_cannot_be_is_named_by_its_variable(environment: dict[str, str]) -> None:
    (name,) = environment

    with pytest.raises(FetchError, match=f"^{name} ") as raised:
        Hub.of(environment)

    assert environment[name] not in str(raised.value).removesuffix("https://huggingface.co")


def test_proxies_or_certificates_that_cannot_be_used_are_named(
    tmp_path: Path, watch: Watching, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", "/nowhere/certificates.pem")

    with pytest.raises(FetchError, match="look at SSL_CERT_FILE"):
        Fetcher(cache=tmp_path, hub=Hub(), watch=watch)(read_address("https://127.0.0.1:9/rows.jsonl"))
