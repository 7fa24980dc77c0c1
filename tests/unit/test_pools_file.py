"""The file of pools: what a pool is, what is refused and how, and when its days begin."""

import math
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from contract.errors import InputError
from contract.pools import Day, Pool, Prices, day_start, held_key, next_boundaries, pool_key, read_pools, tokens_key

GEMINI = {"name": "free", "provider": "gemini", "api_key_env": "GEMINI_API_KEY", "rpm": 10, "tpm": 250_000, "rpd": 250}
SERVED = {"name": "gpu", "provider": "openai", "base_url": "http://gpu:8000/v1", "concurrency": 16}
KEY = "sk-0123456789abcdefSECRET"


def write(folder: Path, *entries: Any) -> Path:  # noqa: ANN401
    """A file of pools with these entries."""
    path = folder / "pools.yaml"
    path.write_text(yaml.safe_dump({"pools": list(entries)}, sort_keys=False), encoding="utf-8")
    return path


def refusal(path: Path) -> InputError:
    """The error that reading this file ends with."""
    with pytest.raises(InputError) as caught:
        read_pools(path)
    return caught.value


def at(text: str) -> datetime:
    """An instant, in UTC."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def in_zone(zone: str, begins: str = "00:00") -> Pool:
    """A pool whose days begin so."""
    day = Day.model_validate({"zone": zone, "begins": begins})
    return Pool(name="any", provider="simulated", rpd=10, day=day)


def test_pools_are_known_by_their_names(tmp_path: Path) -> None:
    pools = read_pools(write(tmp_path, GEMINI, SERVED | {"prices": {"input": 0.1, "output": 1}}))

    assert list(pools) == ["free", "gpu"]
    assert (pools["free"].rpm, pools["free"].tpm, pools["free"].rpd, pools["free"].concurrency) == (
        10,
        250_000,
        250,
        None,
    )
    assert pools["gpu"].prices == Prices(input=0.1, output=1)
    assert (pools["gpu"].window_s, pools["gpu"].share) == (60, 0.9)


def test_gemini_counts_prompts_and_days_of_los_angeles_and_others_all_tokens_and_days_of_utc(tmp_path: Path) -> None:
    pools = read_pools(write(tmp_path, GEMINI, SERVED))

    assert (pools["free"].day, pools["free"].tokens(7, 3)) == (Day(zone="America/Los_Angeles"), 7)
    assert (pools["gpu"].day, pools["gpu"].tokens(7, 3)) == (Day(zone="UTC"), 10)


def test_what_the_file_says_of_days_and_tokens_is_taken(tmp_path: Path) -> None:
    day = {"zone": "Europe/Rome", "begins": "07:30:15"}

    pool = read_pools(write(tmp_path, GEMINI | {"day": day, "tokens_counted": "total"}))["free"]

    assert (pool.day.zone, pool.day.begins.isoformat(), pool.tokens_counted) == ("Europe/Rome", "07:30:15", "total")


@pytest.mark.parametrize(
    ("entry", "begins", "field", "right"),
    [
        pytest.param(
            GEMINI | {"rmp": 3}, "  rmp:", "pools[0].rmp", r"unknown field; did you mean rpm\?", id="misspelt"
        ),
        pytest.param(
            GEMINI | {"qqq": 3}, "  qqq:", "pools[0].qqq", "unknown field; known here: name, provider", id="unknown"
        ),
        pytest.param(
            GEMINI | {"day": {"zome": "UTC"}},
            "    zome:",
            "pools[0].day.zome",
            r"unknown field; did you mean zone\?",
            id="misspelt in a day",
        ),
        pytest.param(
            {"name": "idle", "provider": "openai"},
            "- name: idle",
            "pools[0]",
            "limits nothing; give at least one of rpm, tpm, rpd, concurrency$",
            id="no limit",
        ),
        pytest.param(
            GEMINI | {"provider": "ollama"}, "  provider:", "pools[0].provider", "must be 'openai', 'gem", id="provider"
        ),
        pytest.param({"name": "a", "rpm": 1}, "- name: a", "pools[0].provider", "^is missing$", id="no provider"),
        pytest.param(GEMINI | {"rpm": 0}, "  rpm: 0", "pools[0].rpm", "greater than or equal to 1", id="zero"),
        pytest.param(GEMINI | {"tpm": 1.5}, "  tpm: 1.5", "pools[0].tpm", "valid integer", id="half a token"),
        pytest.param(GEMINI | {"share": 1.1}, "  share:", "pools[0].share", "less than or equal to 1", id="share"),
        pytest.param(GEMINI | {"share": 0}, "  share:", "pools[0].share", "greater than 0", id="no share"),
        pytest.param(
            GEMINI | {"day": {"zone": "America/LosAngeles"}},
            "    zone:",
            "pools[0].day.zone",
            r"no known time zone; did you mean America/Los_Angeles\?; found 'America/LosAngeles'",
            id="zone",
        ),
        pytest.param(
            GEMINI | {"day": {"zone": "../passwd"}}, "    zone:", "pools[0].day.zone", "no known time zone", id="path"
        ),
        pytest.param(
            GEMINI | {"day": {"begins": 630}},
            "    begins:",
            "pools[0].day.begins",
            "must be a time of day in quotes",
            id="10:30 without quotes",
        ),
        pytest.param(
            GEMINI | {"day": {"begins": "24:00"}},
            "    begins:",
            "pools[0].day.begins",
            'must be a time of day in quotes, like "00:00"',
            id="hour 24",
        ),
        pytest.param(
            GEMINI | {"tokens_counted": "output"},
            "  tokens_counted:",
            "pools[0].tokens_counted",
            "must be 'input' or 'total'",
            id="tokens counted",
        ),
        pytest.param(
            GEMINI | {"name": "two words"}, "- name:", "pools[0].name", "must be a name of letters", id="name"
        ),
        pytest.param("free", "- free", "pools[0]", "must be a mapping of fields", id="no mapping"),
    ],
)
def test_what_is_wrong_is_told_with_its_place_and_what_would_be_right(
    tmp_path: Path,
    entry: Any,  # noqa: ANN401
    begins: str,
    field: str,
    right: str,
) -> None:
    path = write(tmp_path, entry)

    error = refusal(path)

    lines = path.read_text("utf-8").splitlines()
    assert (error.path, error.field) == (path, field)
    assert lines[(error.line or 0) - 1].startswith(begins)
    assert re.search(right, error.problem)


@pytest.mark.parametrize(
    "entry",
    [
        pytest.param(SERVED | {"api_key_env": KEY}, id="instead of its variable"),
        pytest.param(SERVED | {"api_key": KEY}, id="in a field of its own"),
        pytest.param(SERVED | {"base_url": f"http://user:{KEY}@gpu/v1"}, id="in the address"),
        pytest.param({"name": "idle", "provider": "openai", "api_key_env": KEY}, id="where no limit is given"),
    ],
)
def test_a_key_is_refused_and_never_printed(tmp_path: Path, entry: dict[str, Any]) -> None:
    error = refusal(write(tmp_path, entry))

    assert KEY not in str(error)
    assert (error.field or "").startswith("pools[0].")


def test_bothways_own_variables_are_no_keys_of_pools(tmp_path: Path) -> None:
    error = refusal(write(tmp_path, SERVED | {"api_key_env": "BOTHWAYS_DATABASE_URL"}))

    assert error.problem == "must not be one of Bothways' own variables"


def test_two_pools_of_one_name_are_refused(tmp_path: Path) -> None:
    error = refusal(write(tmp_path, GEMINI, SERVED, dict(GEMINI)))

    assert (error.field, error.line) == ("pools[2].name", 12)
    assert error.problem == "free is also the name of pools[0]; names must differ"


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("", "the file is empty; a pools file is a mapping that begins with `pools:`"),
        ("- name: free\n", "a pools file is a mapping that begins with `pools:`"),
        ("pool: []\n", r"unknown field; did you mean pools\? \(and 1 more to mend\)"),
        ("pools:\n\t- a\n", "not valid YAML"),
    ],
    ids=["empty", "list", "misspelt", "tab"],
)
def test_a_file_that_is_no_file_of_pools_is_refused(tmp_path: Path, content: str, problem: str) -> None:
    path = tmp_path / "pools.yaml"
    path.write_text(content, encoding="utf-8")

    with pytest.raises(InputError, match=problem):
        read_pools(path)


def test_a_file_may_say_that_there_are_no_quotas() -> None:
    assert read_pools(Path(__file__).parents[2] / "ops/docker/no-pools.yaml") == {}


@pytest.mark.parametrize(
    ("zone", "begins", "now", "start", "following"),
    [
        pytest.param(
            "America/Los_Angeles",
            "00:00",
            "2026-03-08T20:00",
            "2026-03-08T08:00",
            ("2026-03-09T07:00", "2026-03-10T07:00"),
            id="a day of 23 hours",
        ),
        pytest.param(
            "America/Los_Angeles",
            "00:00",
            "2026-11-01T20:00",
            "2026-11-01T07:00",
            ("2026-11-02T08:00", "2026-11-03T08:00"),
            id="a day of 25 hours",
        ),
        pytest.param(
            "America/Los_Angeles",
            "02:30",
            "2026-03-08T10:29",
            "2026-03-07T10:30",
            ("2026-03-08T10:30", "2026-03-09T09:30"),
            id="a time that the clocks skip",
        ),
        pytest.param(
            "America/Los_Angeles",
            "01:30",
            "2026-11-01T08:45",
            "2026-11-01T08:30",
            ("2026-11-02T09:30", "2026-11-03T09:30"),
            id="a time that comes twice",
        ),
        pytest.param(
            "UTC", "00:00", "2026-06-01T00:00", "2026-06-01T00:00", ("2026-06-02T00:00", "2026-06-03T00:00"), id="UTC"
        ),
        pytest.param(
            "Pacific/Kiritimati",
            "23:59:59",
            "2026-06-01T09:59:58",
            "2026-05-31T09:59:59",
            ("2026-06-01T09:59:59", "2026-06-02T09:59:59"),
            id="far ahead of UTC",
        ),
        pytest.param(
            "Pacific/Apia",
            "00:00",
            "2011-12-30T09:00",
            "2011-12-29T10:00",
            ("2011-12-30T10:00", "2011-12-31T10:00"),
            id="a date that was left out",
        ),
    ],
)
def test_days_begin_by_the_clocks_of_their_zone(
    zone: str, begins: str, now: str, start: str, following: tuple[str, str]
) -> None:
    pool = in_zone(zone, begins)

    assert day_start(pool, at(now)) == at(start)
    assert next_boundaries(pool, at(now)) == (at(following[0]), at(following[1]))


@given(
    zone=st.sampled_from(["America/Los_Angeles", "Europe/Rome", "Australia/Lord_Howe", "Asia/Kathmandu", "UTC"]),
    begins=st.times().map(lambda time: time.strftime("%H:%M:%S")),
    now=st.datetimes(datetime(2025, 1, 1), datetime(2028, 1, 1), timezones=st.just(UTC)),  # noqa: DTZ001
)
def test_every_instant_lies_in_one_day_of_23_to_25_hours(zone: str, begins: str, now: datetime) -> None:
    pool = in_zone(zone, begins)

    start, (first, second) = day_start(pool, now), next_boundaries(pool, now)

    assert start <= now < first < second
    assert timedelta(hours=22.9) < first - start < timedelta(hours=25.1)
    assert day_start(pool, first) == first
    assert next_boundaries(pool, start)[0] == first


@given(limit=st.integers(1, 10_000_000), share=st.floats(0.01, 1))
@example(limit=1, share=1.0)
@example(limit=100, share=0.98)
def test_no_window_can_hold_more_requests_than_its_limit(limit: int, share: float) -> None:
    pool = Pool(name="any", provider="simulated", rpm=limit, share=share)

    assert 0 <= pool.burst <= 0.05
    assert math.floor(pool.pace_share * (1 + pool.burst) * limit + 1) <= limit


@given(limit=st.integers(1, 10_000_000), share=st.floats(0.01, 1))
def test_a_call_that_may_go_beside_others_leaves_room_in_the_window(limit: int, share: float) -> None:
    pool = Pool(name="any", provider="simulated", tpm=limit, share=share)

    assert (pool.tokens_alone or 0) <= (pool.tokens_most or 0) <= limit


@pytest.mark.parametrize(("rpd", "share", "most"), [(1000, 0.9, 900), (1, 0.5, 1), (25, 0.9, 22)], ids=str)
def test_of_a_day_only_the_share_is_used_but_never_nothing(rpd: int, share: float, most: int) -> None:
    assert Pool(name="any", provider="simulated", rpd=rpd, share=share).requests_a_day == most


def test_the_file_in_the_documentation_can_be_used(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "pools.md").read_text("utf-8")
    path = tmp_path / "pools.yaml"
    path.write_text(page.split("```yaml\n")[1].split("```")[0], encoding="utf-8")

    assert list(read_pools(path)) == ["flash-first-project", "flash-second-project", "own-server"]
    assert not set(Pool.model_fields) - set(re.findall(r"`(\w+)`", page))


def test_all_keys_of_a_pool_lie_on_one_node() -> None:
    assert {key("free").partition("}")[0] for key in (pool_key, held_key, tokens_key)} == {"bothways:pool:{free"}
