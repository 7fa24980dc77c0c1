"""The quotas of the Gemini API as the fake server keeps them, and the bodies that tell of one that is spent."""

import math
import threading
import time
from collections import defaultdict, deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

Body = dict[str, Any]

PER_MINUTE = "GenerateRequestsPerMinutePerProjectPerModel-FreeTier"
TOKENS_PER_MINUTE = "GenerateContentInputTokensPerModelPerMinute-FreeTier"
PER_DAY = "GenerateRequestsPerDayPerProjectPerModel-FreeTier"
QUOTA_SPENT = "You exceeded your current quota, please check your plan and billing details."
HELP = {"@type": "type.googleapis.com/google.rpc.Help", "links": [{"description": "Learn more about quotas"}]}


@dataclass(frozen=True, kw_only=True)
class Quota:
    """What the model "metered" gives one key; None: no limit.

    `requests` and `tokens` (of input) hold for any `window_s` seconds, wherever they begin; `per_day` for all requests
    since the server's start or since the last `Meter.new_day()`.
    """

    requests: int | None = None
    tokens: int | None = None
    window_s: float = 5.0
    per_day: int | None = None


@dataclass(frozen=True, kw_only=True)
class Arrival:
    """One request to "metered": when it came, on the monotonic clock, and whether it was within the quota."""

    at_s: float
    key: str
    tokens: int
    accepted: bool


class Meter:
    """The quota of every key, and all that was asked. A request counts from its arrival, a refused one not at all."""

    def __init__(self, quota: Quota) -> None:
        self.quota = quota
        self.arrivals: list[Arrival] = []
        self._lock = threading.Lock()
        self._recent: defaultdict[str, deque[tuple[float, int]]] = defaultdict(deque)
        self._today: defaultdict[str, int] = defaultdict(int)

    @property
    def accepted(self) -> list[Arrival]:
        """The requests that were answered."""
        return [arrival for arrival in self.arrivals if arrival.accepted]

    @property
    def refused(self) -> list[Arrival]:
        """The requests that were told to wait."""
        return [arrival for arrival in self.arrivals if not arrival.accepted]

    def new_day(self) -> None:
        """Let the day's quota begin anew for every key."""
        with self._lock:
            self._today.clear()

    def admit(self, key: str, tokens: int, *, at_s: float | None = None) -> Body | None:
        """Count a request that comes now, or at `at_s`; the body of its 429 if it is one too many."""
        with self._lock:
            now = time.monotonic() if at_s is None else at_s
            recent = self._recent[key]
            while recent and recent[0][0] <= now - self.quota.window_s:
                recent.popleft()
            exceeded = [quota for quota, over in self._over(key, tokens) if over]
            self.arrivals.append(Arrival(at_s=now, key=key, tokens=tokens, accepted=not exceeded))
            if exceeded:
                return over_quota(*exceeded, wait_s=self._wait_s(key, tokens, now))
            recent.append((now, tokens))
            self._today[key] += 1
            return None

    def _over(self, key: str, tokens: int) -> Iterator[tuple[str, bool]]:
        quota, recent = self.quota, self._recent[key]
        yield PER_MINUTE, _above(len(recent) + 1, quota.requests)
        yield TOKENS_PER_MINUTE, _above(sum(asked for _, asked in recent) + tokens, quota.tokens)
        yield PER_DAY, _above(self._today[key] + 1, quota.per_day)

    def _wait_s(self, key: str, tokens: int, now: float) -> float:
        """Until so many older requests have left the window that this one would fit; the whole window at most."""
        recent = self._recent[key]
        requests, total = len(recent) + 1, sum(asked for _, asked in recent) + tokens
        for at_s, asked in recent:
            requests, total = requests - 1, total - asked
            if not _above(requests, self.quota.requests) and not _above(total, self.quota.tokens):
                return at_s + self.quota.window_s - now
        return self.quota.window_s


def _above(count: int, limit: int | None) -> bool:
    return limit is not None and count > limit


def tokens_of(prompt: str) -> int:
    """What a prompt counts in the quota and in the usage that is told: a token for every four bytes begun."""
    return max(1, math.ceil(len(prompt.encode("utf-8", "surrogatepass")) / 4))


def error(code: int, status: str, message: str, *details: Body) -> Body:
    """The body of an error."""
    typed = {"details": list(details)} if details else {}
    return {"error": {"code": code, "message": message, "status": status, **typed}}


def over_quota(*quotas: str, wait_s: float, value: str = "250", sentence: str = QUOTA_SPENT) -> Body:
    """The body of a 429 for these quotas: with the hint to come back soon that even the day's has."""
    metric = "generativelanguage.googleapis.com/generate_content_free_tier_requests"
    broken = [{"quotaMetric": metric, "quotaId": quota, "quotaValue": value} for quota in quotas]
    failure = {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": broken}
    retry = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": f"{wait_s:.9g}s"}
    return error(429, "RESOURCE_EXHAUSTED", f"{sentence} Please retry in {wait_s:.9g}s.", HELP, failure, retry)
