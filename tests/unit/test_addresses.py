"""Addresses of data files: what they mean, what their copy is called, and what is none."""

import pytest

from producer.fetching.addresses import HubFile, is_address, read_address
from producer.fetching.errors import FetchError
from producer.fetching.hub import Hub
from producer.fetching.resume import Head, Step, Version, decide, is_whole, next_hop, read_head


@pytest.mark.parametrize(
    ("written", "name", "pattern"),
    [
        ("https://example.org/a/SQuAD_it-test.json.gz", "SQuAD_it-test.json.gz", None),
        ("https://example.org/a/rows.jsonl?download=1&key=x.csv", "rows.jsonl", None),
        ("HTTP://example.org/some%20rows%2Fhere.csv", "here.csv", None),
        ("http://example.org/a/corpus.zip#*/utterances.jsonl", "corpus.zip", "*/utterances.jsonl"),
        ("http://example.org/cmv.tar.bz2?x=1#pair_task/a[0-9].bz2", "cmv.tar.bz2", "pair_task/a[0-9].bz2"),
        ("http://example.org/", "data", None),
        ("http://example.org/..", "data", None),
        ("http://example.org/%2e%2e", "data", None),
        ("http://example.org/a/.hidden", "hidden", None),
        ("http://example.org/a/ö;$(x)`.csv", "____x__.csv", None),
        (f"http://example.org/{'x' * 300}.jsonl.gz", f"{'x' * 91}.jsonl.gz", None),
        ("hf://datasets/o/n/default/train/0000.parquet", "0000.parquet", None),
    ],
)
def test_a_copy_is_called_as_the_address_says(written: str, name: str, pattern: str | None) -> None:
    address = read_address(written)

    assert (address.name, address.pattern) == (name, pattern)


def test_each_address_has_a_folder_of_its_own_and_an_archive_one_for_all_its_files() -> None:
    one, other = read_address("https://example.org/a/x.csv"), read_address("https://example.org/b/x.csv")
    first, second = (read_address(f"https://example.org/x.zip#{pattern}") for pattern in ("a", "b"))

    assert one.folder != other.folder
    assert one.folder.startswith("x-")
    assert first.folder == second.folder


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("hf://datasets/o/n/a/b.csv", HubFile(repo="o/n", revision="main", path="a/b.csv")),
        ("hf://datasets/o/n@v1.0/b.csv", HubFile(repo="o/n", revision="v1.0", path="b.csv")),
        ("hf://datasets/o/n@refs%2Fpr%2F3/b.csv", HubFile(repo="o/n", revision="refs/pr/3", path="b.csv")),
        (
            "hf://datasets/o/n@refs/convert/parquet/default/0.parquet",
            HubFile(repo="o/n", revision="refs/convert/parquet", path="default/0.parquet"),
        ),
    ],
)
def test_an_address_on_the_hub_names_dataset_revision_and_path(written: str, meant: HubFile) -> None:
    assert read_address(written).hub == meant


def test_the_hub_is_asked_at_its_own_address_or_at_the_one_that_is_named() -> None:
    address = read_address("hf://datasets/o/n@refs%2Fpr%2F3/some rows?.csv".replace(" ", "%20").replace("?", "%3F"))

    assert Hub().url(address) == "https://huggingface.co/datasets/o/n/resolve/refs%2Fpr%2F3/some%20rows%3F.csv"
    mirror = Hub.of({"HF_ENDPOINT": "https://mirror.example.org/hub/", "HF_TOKEN": " "})
    assert mirror.url(read_address("hf://datasets/o/n/a.csv")) == (
        "https://mirror.example.org/hub/datasets/o/n/resolve/main/a.csv"
    )
    assert mirror.token is None


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("s3://bucket/a.csv", "s3:// is not known: an address begins with https://, http:// or hf://"),
        ("file:///etc/passwd", "file:// is not known"),
        ("hf://models/o/n/a.csv", "reads hf://datasets/OWNER/NAME/PATH"),
        ("hf://datasets/squad/a.csv", "reads hf://datasets/OWNER/NAME/PATH"),
        ("hf://datasets/o/n", "reads hf://datasets/OWNER/NAME/PATH"),
        ("hf://datasets/o/n/a.csv?download=1", "reads hf://datasets/OWNER/NAME/PATH"),
        ("https:///a.csv", "names a host and a file"),
        ("https://host:port/a.csv", "names a host and a file"),
        ("https://[::1/a.csv", "names a host and a file"),
        ("https://me:secret@host/a.csv", "no user name and no password"),
        ("https://host/a b.csv", "no spaces"),
        ("https://host/a\n.csv", "no spaces or control characters"),
        ("https://host/a.zip", "a.zip is an archive: say which of its files, with #PATTERN"),
        ("https://host/a.tar.gz#", "is an archive"),
        ("https://host/a.csv#x", "#x chooses a file of an archive .*, and a.csv is none"),
    ],
)
def test_what_is_no_address_of_a_data_file_says_how_one_is_written(written: str, said: str) -> None:
    assert is_address(written)
    with pytest.raises(FetchError, match=said) as raised:
        read_address(written)
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize("written", ["items.jsonl", "/data/a.csv", "../a:b.csv", "C:/a.csv", "", "://x"])
def test_a_path_is_no_address(written: str) -> None:
    assert not is_address(written)


KEPT = Version(total=10, etag='"a"')


@pytest.mark.parametrize(
    ("held", "kept", "status", "headers", "step"),
    [
        (0, None, 200, {}, Step.BEGIN),
        (4, KEPT, 200, {}, Step.BEGIN),
        (4, KEPT, 206, {"content-range": "bytes 4-9/10"}, Step.CONTINUE),
        (4, KEPT, 206, {"content-range": "bytes 4-9/10", "etag": '"a"'}, Step.CONTINUE),
        (4, KEPT, 206, {"content-range": "bytes 4-9/*"}, Step.CONTINUE),
        (4, KEPT, 206, {"content-range": "bytes 4-9/10", "etag": '"b"'}, Step.ASK_ANEW),
        (4, KEPT, 206, {"content-range": "bytes 4-9/11"}, Step.ASK_ANEW),
        (4, KEPT, 206, {"content-range": "bytes 5-9/10"}, Step.ASK_ANEW),
        (4, KEPT, 206, {"content-range": "bytes 4-9/10, 1-2/10"}, Step.ASK_ANEW),
        (4, KEPT, 206, {}, Step.ASK_ANEW),
        (0, None, 206, {"content-range": "bytes 0-9/10"}, Step.ASK_ANEW),
        (4, None, 206, {"content-range": "bytes 4-9/10"}, Step.ASK_ANEW),
        (4, KEPT, 416, {"content-range": "bytes */10"}, Step.ASK_ANEW),
    ],
)
def test_an_answer_continues_what_is_there_only_where_all_of_it_fits(
    held: int, kept: Version | None, status: int, headers: dict[str, str], step: Step
) -> None:
    assert decide(held, kept, read_head(status, headers)) is step


@pytest.mark.parametrize(
    "headers",
    [
        {"content-length": "-5"},
        {"content-length": "9" * 40},
        {"content-length": "1_0"},
        {"content-length": "٣"},
        {"etag": 'W/"weak"'},
        {"etag": '"' + "x" * 300 + '"'},
        {"etag": '"a\tb"'},
        {"etag": "bare"},
        {"last-modified": "Tue, 04 Aug 2026 10:00:00 GMT"},
        {"last-modified": "Tue, 04 Aug 2026 10:00:00 GMT", "date": "Tue, 04 Aug 2026 10:00:01 GMT"},
        {"last-modified": "Tue, 99 Aug 2026 10:00:00 GMT", "date": "Tue, 04 Aug 2026 10:00:01 GMT"},
        {"content-range": "bytes 4-9/10"},
    ],
)
def test_what_a_head_says_that_cannot_be_is_not_believed(headers: dict[str, str]) -> None:
    assert read_head(200, headers) == Head(status=200, start=None, version=Version())


def test_a_file_is_whole_when_it_has_all_that_was_promised() -> None:
    assert is_whole(10, KEPT)
    assert not any((is_whole(9, KEPT), is_whole(10, None), is_whole(0, Version(total=0)), is_whole(5, Version())))


def test_a_redirection_is_meant_from_where_it_was_met() -> None:
    assert next_hop("https://a.org/x/y", "../z?q=1") == "https://a.org/z?q=1"
    assert next_hop("http://a.org/x", "https://b.org/") == "https://b.org/"
    assert next_hop("https://a.org/x", "//b.org/z") == "https://b.org/z"
