"""Archives: unpacked whole beside themselves, one file chosen by pattern, and nothing outside their folder."""

import io
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from producer.fetching.addresses import read_address
from producer.fetching.at_hand import Fetched, at_hand
from producer.fetching.cache import Entry, entry_of
from producer.fetching.errors import FetchError
from producer.fetching.fetcher import Fetcher
from producer.fetching.hub import Hub
from tests.file_server import NETWORK, Watching, file_server

CORPUS = {"corpus/utterances.jsonl": b'{"id": 1}\n', "corpus/conversations.json": b"{}", "corpus/deep/a.txt": b"a"}


def zipped(files: Mapping[str, bytes]) -> bytes:
    """A ZIP archive."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(name), content)
    return packed.getvalue()


def taped(files: Mapping[str, bytes], mode: str, *links: tarfile.TarInfo) -> bytes:
    """A tar archive."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode=mode) as archive:  # type: ignore[call-overload]
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
        for link in links:
            archive.addfile(link)
    return packed.getvalue()


def fetch(cache: Path, name: str, content: bytes, pattern: str) -> tuple[Fetched, Entry]:
    """The chosen file of an archive that a server has."""
    with file_server() as server:
        server.content = content
        address = read_address(f"{server.base_url}/{name}#{pattern}")
        fetcher = Fetcher(cache=cache, hub=Hub(), watch=Watching(), transport=NETWORK)
        return fetcher(address), entry_of(cache, address)


KINDS = {
    "corpus.zip": zipped(CORPUS),
    "corpus.tar": taped(CORPUS, "w"),
    "corpus.tar.gz": taped(CORPUS, "w:gz"),
    "corpus.TGZ": taped({f"./{name}": content for name, content in CORPUS.items()}, "w:gz"),
    "corpus.tar.bz2": taped(CORPUS, "w:bz2"),
}


@pytest.mark.parametrize("name", KINDS)
def test_one_file_is_chosen_and_what_belongs_to_it_lies_beside(tmp_path: Path, name: str) -> None:
    fetched, entry = fetch(tmp_path, name, KINDS[name], "*/utterances.jsonl")

    assert fetched.path == entry.unpacked / "corpus/utterances.jsonl"
    assert fetched.path.read_bytes() == CORPUS["corpus/utterances.jsonl"]
    assert fetched.path.with_name("conversations.json").read_bytes() == b"{}"
    assert (entry.unpacked / "corpus/deep/a.txt").exists()
    assert fetched.bytes == len(KINDS[name])


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        (
            "*.csv",
            "#*.csv fits no file of corpus.zip; it holds corpus/conversations.json, corpus/deep/a.txt, corpus/utt",
        ),
        (
            "corpus/*.json*",
            "fits 2 files of corpus.zip, and must fit one: corpus/conversations.json, corpus/utterances",
        ),
        ("utterances.jsonl", "fits no file"),
    ],
)
def test_a_pattern_that_does_not_choose_one_file_is_answered_with_those_there_are(
    tmp_path: Path, pattern: str, said: str
) -> None:
    with pytest.raises(FetchError) as raised:
        fetch(tmp_path, "corpus.zip", KINDS["corpus.zip"], pattern)

    assert said in str(raised.value)


@pytest.mark.parametrize("evil", ["../../outside.txt", "/tmp/outside.txt", "a/../../outside.txt", ".."])  # noqa: S108
@pytest.mark.parametrize("kind", ["zip", "tar"])
def test_an_archive_that_would_write_outside_its_folder_is_refused_whole(tmp_path: Path, evil: str, kind: str) -> None:
    files = {"good.txt": b"good", evil: b"evil"}
    content = zipped(files) if kind == "zip" else taped(files, "w")

    with pytest.raises(FetchError, match="would leave its folder"):
        fetch(tmp_path / "cache", f"a.{kind}", content, "good.txt")

    assert not list(tmp_path.rglob("outside.txt"))
    assert not list(tmp_path.rglob("good.txt"))


def test_links_are_left_out(tmp_path: Path) -> None:
    link = tarfile.TarInfo("secret.txt")
    link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
    over = tarfile.TarInfo("folder")
    over.type, over.linkname = tarfile.SYMTYPE, "/tmp"  # noqa: S108

    with pytest.raises(FetchError, match=r"fits no file of a\.tar; it holds folder/x\.txt"):
        fetch(tmp_path, "a.tar", taped({"folder/x.txt": b"x"}, "w", link, over), "secret.txt")


@pytest.mark.parametrize("content", [b"", b"no archive", KINDS["corpus.zip"][:-40], KINDS["corpus.tar.bz2"][:-30]])
@pytest.mark.parametrize("name", ["a.zip", "a.tar.bz2", "a.tar.gz"])
def test_an_archive_that_is_damaged_says_what_to_delete(tmp_path: Path, name: str, content: bytes) -> None:
    with pytest.raises(FetchError, match=rf"{name} cannot be unpacked \(.*\); delete it to fetch it anew"):
        fetch(tmp_path, name, content, "*")

    assert not list(tmp_path.rglob("*.unpacked*"))


LOCKED = bytearray(zipped({"a.csv": b"x"}))
LOCKED[6] |= 1  # the flag of an encrypted file, before it and in the list of all files
LOCKED[LOCKED.index(b"PK\x01\x02") + 8] |= 1


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (zipped({"a": b"x", "a/b.csv": b"y"}), "File exists"),
        (zipped({"a" * 300: b"x"}), "File name too long"),
        (bytes(LOCKED), "is encrypted"),
    ],
)
def test_an_archive_that_no_folder_can_hold_or_nobody_can_read_says_why(
    tmp_path: Path, content: bytes, said: str
) -> None:
    with pytest.raises(FetchError, match=rf"cannot be unpacked \(.*{said}.*unpack it by hand and give the path"):
        fetch(tmp_path, "a.zip", content, "*")


def test_what_was_changed_after_unpacking_is_unpacked_again(tmp_path: Path) -> None:
    _, entry = fetch(tmp_path, "corpus.zip", KINDS["corpus.zip"], "*/utterances.jsonl")
    address = read_address("http://127.0.0.1:9/corpus.zip#*/utterances.jsonl")
    there = entry_of(tmp_path, address)
    entry.folder.rename(there.folder)
    assert at_hand(tmp_path, address) is not None

    (there.unpacked / "corpus/conversations.json").write_bytes(b"tampered with")

    assert at_hand(tmp_path, address) is None
    fetched = Fetcher(cache=tmp_path, hub=Hub(), watch=Watching(), transport=NETWORK)(address)
    assert fetched.path.with_name("conversations.json").read_bytes() == b"{}"


def test_a_name_in_an_old_encoding_does_not_stand_in_the_way(tmp_path: Path) -> None:
    content = taped({"perch\udce9.txt": b"x", "rows.csv": b"y"}, "w")

    assert fetch(tmp_path, "a.tar", content, "rows.csv")[0].path.read_bytes() == b"y"
