"""A search for texts that must stand nowhere: in every row, in the broker and in files, however they may be written."""

import json
import threading
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus

from redis import Redis
from sqlalchemy import Engine, text

Places = Mapping[str, list[str]]
"""What stands where: a column, a key of the broker, a file."""


def written(secret: str) -> set[str]:
    """`secret` as it is, and as JSON, Python, an address and base64 write it, in lower case."""
    plain = {secret, json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1]}
    coded = {code for each in plain for place in range(3) for code in _within_base64(each.encode(), place)}
    quoted = {repr(secret)[1:-1], quote(secret), quote(secret, safe=""), quote_plus(secret)}
    return {each.lower() for each in plain | coded | quoted}


def found(places: Places, *secrets: str) -> list[str]:
    """Where any of the `secrets` stands, in any spelling: "SECRET in PLACE"."""
    wanted = {secret: written(secret) for secret in secrets}
    hits = []
    for place, texts in places.items():
        whole = "\n".join(texts).lower()
        hits += [f"{secret!r} in {place}" for secret, spellings in wanted.items() if any(s in whole for s in spellings)]
    return hits


def rows(engine: Engine) -> dict[str, list[str]]:
    """Every text in every column of every table, by "table.column"; JSON with its keys."""
    places: dict[str, list[str]] = {}
    with engine.connect() as connection:
        named = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public' ORDER BY table_name"
        for table in connection.execute(text(named)).scalars():
            for row in connection.execute(text(f"SELECT to_jsonb(kept) FROM {table} AS kept")).scalars():  # noqa: S608
                for column, value in row.items():
                    places.setdefault(f"{table}.{column}", []).extend(_texts(value))
    return places


def broker(client: Redis) -> dict[str, list[str]]:
    """Every key of the broker with all that it holds; `client` decodes nothing."""
    return {f"broker:{_text(key)}": [_text(key), *_held(client, key)] for key in client.scan_iter(count=1000)}


def files(*folders: Path) -> dict[str, list[str]]:
    """Every file in these folders, at any depth."""
    paths = (path for folder in folders for path in folder.rglob("*") if path.is_file())
    return {f"file:{path}": [path.name, _text(path.read_bytes())] for path in paths}


@contextmanager
def overhearing(broker_url: str) -> Iterator[list[str]]:
    """Every command that anybody sends to the broker meanwhile."""
    heard: list[str] = []
    # Where nobody says anything for long, there is nothing to hear: no time-out.
    with Redis.from_url(broker_url, socket_timeout=None) as client, client.monitor() as monitor:

        def listen() -> None:
            for command in monitor.listen():
                heard.append(str(command["command"]).replace("\\\\", "\\"))  # as it was before it was shown
                if "the-end-of-overhearing" in heard[-1]:
                    return

        thread = threading.Thread(target=listen, daemon=True)
        thread.start()
        try:
            yield heard
        finally:
            client.echo("the-end-of-overhearing")
            thread.join(timeout=20)


def _within_base64(raw: bytes, place: int) -> Iterable[str]:
    """What stands in the base64 of anything that holds `raw` after `place` bytes more than a multiple of three."""
    coded = b64encode(b"\0" * place + raw).decode()
    whole = coded[(0, 2, 3)[place] : (place + len(raw)) * 8 // 6]
    return whole, whole.replace("+", "-").replace("/", "_")


def _texts(value: Any) -> Iterator[str]:  # noqa: ANN401 - any JSON value
    if isinstance(value, dict):
        for key, inner in value.items():
            yield key
            yield from _texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner)
    elif value is not None:
        yield str(value)


def _held(client: Any, key: bytes) -> Iterable[str]:  # noqa: ANN401 - its results are untyped in part
    kind = _text(client.type(key))
    match kind:
        case "string":
            held: Any = [client.get(key)]
        case "hash":
            held = [each for pair in client.hgetall(key).items() for each in pair]
        case "list":
            held = client.lrange(key, 0, -1)
        case "set":
            held = client.smembers(key)
        case "zset":
            held = client.zrange(key, 0, -1)
        case "stream":
            held = [part for _, entry in client.xrange(key) for pair in entry.items() for part in pair]
        case "none":  # it was deleted meanwhile
            held = []
        case _:
            raise AssertionError(f"{_text(key)} is a {kind}, which nobody searches")
    return [_text(each) for each in held if each is not None]


def _text(raw: Any) -> str:  # noqa: ANN401 - what a client returns
    return raw.decode("utf-8", "replace") if isinstance(raw, bytes) else str(raw)
