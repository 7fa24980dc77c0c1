"""Pools: the quotas that all workers share, the file that names them, and under which keys the broker knows them.

A quota belongs to a project and a model, not to a key: two keys of one project are one pool. What is left of each pool
is kept in the broker by `worker.pools` and can be read there without this file (`contract.pool_state`).
"""

import re
from collections.abc import Mapping
from datetime import UTC, date, datetime, time, timedelta
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from zoneinfo import ZoneInfo, available_timezones

from pydantic import AfterValidator, BeforeValidator, Field, ValidationError, model_validator

from contract.errors import InputError
from contract.models import Address, Variable
from contract.refusals import refusal
from contract.spec import Name, Spec, refuse_entry
from contract.yaml_lines import YamlDocument, print_path, read_text

LIMITS = ("rpm", "tpm", "rpd", "concurrency")

MOST_SHARE = 0.98
"""A larger share is paced as this one: with nothing to spare, a call that travels slowly makes one too many."""

BURST = 0.03
"""How much of a window may be made up for at once after a pause; the less, the nearer a share is to the whole."""

_ON_A_CLOCK = re.compile(r"([01]\d|2[0-3]):[0-5]\d(:[0-5]\d)?")
_DAY = timedelta(days=1)


def _known_zone(zone: str) -> str:
    known = _zones()
    if zone not in known:
        near = get_close_matches(zone, sorted(known), n=1)
        hint = f"did you mean {near[0]}?" if near else "for example UTC or America/Los_Angeles"
        raise ValueError(f"no known time zone; {hint}")
    return zone


@cache
def _zones() -> frozenset[str]:
    return frozenset(available_timezones())


def _time_of_day(begins: object) -> object:
    """YAML 1.1 takes 10:30 without quotes for the number 630, so only text is a time of day."""
    if isinstance(begins, time):
        return begins
    if isinstance(begins, str) and _ON_A_CLOCK.fullmatch(begins):
        return time.fromisoformat(begins)
    raise ValueError('must be a time of day in quotes, like "00:00" or "07:30:00"')


class Day(Spec):
    """When a day of quota begins: at `begins` on the clocks of `zone`, also on days of 23 and 25 hours."""

    zone: Annotated[str, AfterValidator(_known_zone)] = "UTC"
    begins: Annotated[time, BeforeValidator(_time_of_day)] = time()


class Prices(Spec):
    """US dollars for a million tokens."""

    input: Annotated[float, Field(ge=0)]
    output: Annotated[float, Field(ge=0)]


Limit = Annotated[int, Field(ge=1)]


def _day_of(entry: dict[str, Any]) -> Day:
    return Day(zone="America/Los_Angeles") if entry.get("provider") == "gemini" else Day()


def _counted_by(entry: dict[str, Any]) -> Literal["input", "total"]:
    return "input" if entry.get("provider") == "gemini" else "total"


class Pool(Spec):
    """One quota: what one project may ask of one model, or what one server can do at once.

    `rpm` and `tpm` are requests and tokens in any `window_s` seconds, a minute if nothing else is said; `rpd` is
    requests of a `day`, `concurrency` calls at once. Of the first three only `share` is used. `tokens_counted` says
    whether the provider counts prompts only or answers as well.
    """

    name: Name
    provider: Literal["openai", "gemini", "simulated"]
    api_key_env: Variable | None = None
    base_url: Address | None = None
    rpm: Limit | None = None
    tpm: Limit | None = None
    rpd: Limit | None = None
    concurrency: Limit | None = None
    window_s: Annotated[float, Field(gt=0, le=3600)] = 60.0
    day: Day = Field(default_factory=_day_of)
    share: Annotated[float, Field(gt=0, le=1)] = 0.9
    tokens_counted: Literal["input", "total"] = Field(default_factory=_counted_by)
    prices: Prices | None = None

    @model_validator(mode="after")
    def _limits_something(self) -> Self:
        if all(getattr(self, limit) is None for limit in LIMITS):
            raise refuse_entry(f"limits nothing; give at least one of {', '.join(LIMITS)}")
        return self

    @property
    def pace_share(self) -> float:
        """The share that `rpm` and `tpm` are paced at."""
        return min(self.share, MOST_SHARE)

    @property
    def burst(self) -> float:
        """The part of a window that may be made up for at once: pace_share * (1 + burst) stays below 1."""
        return min(BURST, (1 / self.pace_share - 1) / 2)

    @property
    def tokens_alone(self) -> int | None:
        """A call of more tokens than this goes only when no other is in the window."""
        return None if self.tpm is None else int(self.pace_share * self.tpm)

    @property
    def tokens_most(self) -> int | None:
        """The tokens that any window may hold, however large the calls: a little more than their even pace needs."""
        return None if self.tpm is None else int(min(0.99, 1.1 * self.pace_share) * self.tpm)

    @property
    def requests_a_day(self) -> int | None:
        """The requests of a day that are used at most; one at least."""
        return None if self.rpd is None else max(1, int(self.share * self.rpd))

    def tokens(self, tokens_in: int, tokens_out: int) -> int:
        """What of a call's tokens counts against `tpm`."""
        return tokens_in if self.tokens_counted == "input" else tokens_in + tokens_out


class PoolsFile(Spec):
    """The whole file. An empty list says that there are no quotas."""

    pools: Annotated[tuple[Pool, ...], Field(strict=False)]


def read_pools(path: Path) -> dict[str, Pool]:
    """The pools of a file by their names; InputError says what is wrong with it, where, and what would be right."""
    begins = "a pools file is a mapping that begins with `pools:`"
    document = YamlDocument(path, read_text(path), wanted=begins)
    if not isinstance(document.values, dict):
        raise InputError(path, begins, line=1)
    try:
        pools = PoolsFile.model_validate(document.values).pools
    except ValidationError as error:
        raise refusal(path, document, error.errors(include_url=False), PoolsFile) from None
    found: dict[str, Pool] = {}
    for number, pool in enumerate(pools):
        if pool.name in found:
            twin, field = list(found).index(pool.name), ("pools", number, "name")
            problem = f"{pool.name} is also the name of pools[{twin}]; names must differ"
            raise InputError(path, problem, line=document.line_of(field), field=print_path(field))
        found[pool.name] = pool
    return found


def day_start(pool: Pool, now: datetime) -> datetime:
    """When the pool's day that holds `now` (aware) began, in UTC."""
    return max(boundary for boundary in _boundaries(pool, now) if boundary <= now)


def next_boundaries(pool: Pool, now: datetime) -> tuple[datetime, datetime]:
    """When the pool's next two days begin after `now` (aware), in UTC."""
    first, second = [boundary for boundary in _boundaries(pool, now) if boundary > now][:2]
    return first, second


def _boundaries(pool: Pool, now: datetime) -> list[datetime]:
    """The days' beginnings around `now`, in order.

    A time that the clocks skip is told by the clock as it went before, one that comes twice means the first. A date
    that a zone skipped as a whole begins with the next one, hence the set.
    """
    zone = ZoneInfo(pool.day.zone)
    today: date = now.astimezone(zone).date()
    dates = (today + number * _DAY for number in range(-3, 5))
    return sorted({datetime.combine(day, pool.day.begins, tzinfo=zone).astimezone(UTC) for day in dates})


def pool_key(name: str) -> str:
    """The hash that holds what is known of a pool; the braces keep all keys of a pool on one node of a cluster."""
    return f"bothways:pool:{{{name}}}"


def held_key(name: str) -> str:
    """The sorted set of calls in flight: permit -> when its place is free again, in ms."""
    return f"{pool_key(name)}:held"


def tokens_key(name: str) -> str:
    """The sorted set of tokens granted within a window: "TOKENS:PERMIT" -> when, in ms."""
    return f"{pool_key(name)}:tokens"


FIELDS: Mapping[str, str] = {
    "paused_until": "when a pause ends",
    "reason": "why it was paused last",
    "factor": "the part of its pace that it kept after it was throttled, as of its last permit",
    "day_end": "when the day ends whose calls are counted",
    "used": "how many calls that day has seen",
}
"""The fields of a pool's hash that others than the gate read; times are ms since 1970 by the broker's clock."""
