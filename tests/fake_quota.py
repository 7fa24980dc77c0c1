"""A small HTTP server with a quota: so many requests and tokens in any window that ends now, counted as they arrive.

By hand: `python -m tests.fake_quota` allows 60 requests and 6,000 tokens in any 5 seconds; each request is a POST of
{"tokens": N}, each path has a quota of its own.
"""

import json
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

WORK_S = 0.02
"""How long an answer takes."""


@dataclass(frozen=True, kw_only=True)
class Quota:
    """What any `window_s` seconds may hold; None where there is no limit."""

    window_s: float
    requests: int | None = None
    tokens: int | None = None


@dataclass(frozen=True, kw_only=True)
class Arrival:
    """One request as it was counted; `at` by the monotonic clock."""

    at: float
    tokens: int
    allowed: bool


class FakeQuota(ThreadingHTTPServer):
    """The server with all that arrived, by path."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, quotas: Mapping[str, Quota], port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.quotas = quotas
        self.arrivals: dict[str, list[Arrival]] = defaultdict(list)
        self._counting = threading.Lock()

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ANN401
        """Report a fault of ours; a client that breaks off is none."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)

    def count(self, path: str, tokens: int, at: float) -> bool:
        """Whether the request fits the window that ends with it; one that does not is not counted in the next."""
        quota = self.quotas[path]
        with self._counting:
            window = [each for each in self.arrivals[path] if each.allowed and each.at > at - quota.window_s]
            allowed = (quota.requests is None or len(window) < quota.requests) and (
                quota.tokens is None or sum(each.tokens for each in window) + tokens <= quota.tokens
            )
            self.arrivals[path].append(Arrival(at=at, tokens=tokens, allowed=allowed))
        return allowed


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: FakeQuota

    def do_POST(self) -> None:
        at = time.monotonic()
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        allowed = self.server.count(self.path, asked["tokens"], at)
        if allowed:
            time.sleep(WORK_S)
        content = json.dumps({"tokens": asked["tokens"] if allowed else 0}).encode()
        self.send_response(200 if allowed else 429)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: Any) -> None:  # noqa: ANN401
        """Nothing: what arrived is kept."""


@contextmanager
def fake_quota(quotas: Mapping[str, Quota]) -> Iterator[FakeQuota]:
    """The server on a free port, serving."""
    with FakeQuota(quotas) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def main() -> None:
    """Serve in the foreground until Ctrl-C."""
    quotas: Mapping[str, Quota] = defaultdict(lambda: Quota(window_s=5, requests=60, tokens=6000))
    with FakeQuota(quotas, port=int(sys.argv[1]) if len(sys.argv) > 1 else 8002) as server:
        sys.stderr.write(f"serving http://127.0.0.1:{server.server_port}\n")
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            return


if __name__ == "__main__":
    main()
