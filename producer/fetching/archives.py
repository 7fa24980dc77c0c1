"""Archives, unpacked whole, because files that belong together refer to each other; one of them is what is read.

Only plain files are unpacked, each under the path that the archive gives it. An archive with a path that leaves the
folder is refused; links and devices are left out.
"""

import hashlib
import lzma
import shutil
import tarfile
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import IO

from producer.datasets.rows import listed, printable
from producer.fetching.cache import Contents, Entry, read_kept, sha256_of, write_kept, writing
from producer.fetching.errors import FetchError

_PIECE = 1 << 20
_DAMAGED = (
    *(zipfile.BadZipFile, tarfile.TarError, zlib.error, lzma.LZMAError, EOFError, UnicodeError),
    *(NotImplementedError, RuntimeError, ValueError, OverflowError),  # zipfile's, for what it cannot unpack
)

Member = tuple[str, IO[bytes]]


def unpacked(entry: Entry, sha256: str) -> Contents | None:
    """What the archive with this hash was unpacked to, None where that is not there any more as it was."""
    contents = read_kept(Contents, entry.contents)
    if contents is None or contents.archive != sha256:
        return None
    try:
        same = all(sha256_of(entry.unpacked / name) == known for name, known in contents.files.items())
    except OSError:
        return None
    return contents if same else None


def unpack(entry: Entry, sha256: str) -> Contents:
    """Unpack the archive, which has this hash, beside it: whole or not at all."""
    beside = entry.unpacked.with_name(f"{entry.unpacked.name}.new")
    with writing(entry.folder):
        _remove(beside)
        beside.mkdir()
    try:
        contents = Contents(archive=sha256, files=_unpack_into(beside, entry.file))
        with writing(entry.folder):
            entry.contents.unlink(missing_ok=True)
            _remove(entry.unpacked)
            beside.replace(entry.unpacked)
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    write_kept(contents, entry.contents)
    return contents


def choose(names: Iterable[str], pattern: str, archive: str) -> str:
    """The one path that `pattern` fits as a whole; FetchError names what there is where it is not one."""
    names = sorted(names)
    found = [name for name in names if fnmatchcase(name, pattern)]
    if len(found) == 1:
        return found[0]
    if found:
        raise FetchError(f"#{pattern} fits {len(found)} files of {archive}, and must fit one: {listed(found)}")
    raise FetchError(f"#{pattern} fits no file of {archive}; it holds {listed(names) if names else 'nothing'}")


def _unpack_into(folder: Path, archive: Path) -> dict[str, str]:
    """The hashes of all files by their paths."""
    found: dict[str, str] = {}
    with _damage_told(archive):
        for name, content in _members(archive):
            target = folder.joinpath(*_parts(archive, name))
            target.parent.mkdir(parents=True, exist_ok=True)  # paths that no folder can hold are the archive's fault
            with target.open("wb") as file:
                found[PurePosixPath(name).as_posix()] = _copy(content, file, folder)
    return found


def _copy(content: IO[bytes], file: IO[bytes], folder: Path) -> str:
    digest = hashlib.sha256()
    while piece := content.read(_PIECE):
        digest.update(piece)
        with writing(folder.parent):
            file.write(piece)
    return digest.hexdigest()


def _members(archive: Path) -> Iterator[Member]:
    """The plain files of the archive, one after the other."""
    if archive.name.lower().endswith(".zip"):
        with zipfile.ZipFile(archive) as packed:
            for member in packed.infolist():
                if not member.is_dir():
                    with packed.open(member) as content:
                        yield _as_text(member.filename), content
        return
    with tarfile.open(archive) as tape:
        for entry in tape:
            file = tape.extractfile(entry) if entry.isreg() else None
            if file is not None:
                with file:
                    yield _as_text(entry.name), file


def _as_text(name: str) -> str:
    """The path as UTF-8 can say it: old archives hold names in other encodings."""
    return name.encode("utf-8", "backslashreplace").decode("utf-8")


def _parts(archive: Path, name: str) -> tuple[str, ...]:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or not path.parts or "\0" in name:
        raise FetchError(f"{archive} holds a file that would leave its folder, {printable(name)}; it is not unpacked")
    return path.parts


@contextmanager
def _damage_told(archive: Path) -> Iterator[None]:
    """What the libraries say of an archive that they cannot unpack becomes one clear error."""
    try:
        yield
    except (*_DAMAGED, OSError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__
        detail = printable(reason.partition("\n")[0])
        problem = f"cannot be unpacked ({detail}); delete it to fetch it anew, or unpack it by hand and give the path"
        raise FetchError(f"{archive} {problem}") from None


def _remove(path: Path) -> None:
    if path.exists() or path.is_symlink():
        shutil.rmtree(path)
