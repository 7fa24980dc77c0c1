"""What a study will take: the plan's volumes, less what is done, on the slots and quotas at hand."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from sqlalchemy import Connection, Engine, text

from contract.conditions import queue_for
from contract.database import postgres_errors
from contract.models import Model, OllamaModel, pools_of, whole_tag
from contract.pools import Pool, day_start
from ops.pools import calls_since
from producer.forecast import Capacity, Duration, Volume, cost, duration, volumes
from producer.study_file import LoadedStudy
from producer.window import WORKER_SEEN_S

LATEST_CALLS = 2_000
"""From so many calls of a model its pace is taken."""

_DONE = text("""
    SELECT condition.digest, count(*) AS jobs FROM job JOIN condition ON condition.id = job.condition
    JOIN study ON study.id = job.study
    WHERE study.name = :study AND job.planned AND job.finished_at IS NOT NULL GROUP BY condition.digest
""")
_PACE = text("""
    SELECT avg(latency_ms) / 1000.0 FROM (
        SELECT latency_ms FROM attempt JOIN job ON job.id = attempt.job
        WHERE job.queue = :queue AND attempt.outcome <> 'no_completion' LIMIT :latest) AS latest
""")
_SLOTS = text("""
    SELECT coalesce(sum(slots), 0) FROM worker_heartbeat
    WHERE seen_at > now() - make_interval(secs => :seen) AND (queues ? :queue OR models ? :tag)
""")


@dataclass(frozen=True, kw_only=True)
class Planned:
    """One condition: all its jobs, how many of them are done, and what is left of it."""

    volume: Volume
    done: int

    @property
    def left(self) -> Volume:
        """What is still to be asked."""
        return self.volume.left(self.done)


@dataclass(frozen=True, kw_only=True)
class ModelForecast:
    """What is left of one model: jobs, tokens, how long it takes (None: nothing is known of that), what it costs.

    `dollars` are for the prompts alone, and with every answer at its budget. `retries` is how often an answer that
    cannot be read may be asked for again; such calls come on top.
    """

    model: str
    jobs: int
    prompt_tokens: int | None
    answer_tokens: int
    takes: Duration | None
    dollars: tuple[float, float] | None
    retries: int


@dataclass(frozen=True, kw_only=True)
class Forecast:
    """A whole study. `known` says whether a database was there to tell what is done and who is at work."""

    study: str
    planned: tuple[Planned, ...]
    models: tuple[ModelForecast, ...]
    known: bool


def forecast(loaded: LoadedStudy, engine: Engine | None, pools: Mapping[str, Pool]) -> Forecast:
    """The forecast of a study; without a database nothing is done and nobody is at work. Writes nothing."""
    if engine is None:
        return _forecast(loaded, None, pools)
    with postgres_errors(engine), engine.connect() as connection:
        return _forecast(loaded, connection, pools)


def _forecast(loaded: LoadedStudy, connection: Connection | None, pools: Mapping[str, Pool]) -> Forecast:
    study = loaded.study.study
    done: dict[str, int] = {}
    if connection is not None:
        done = {row.digest: row.jobs for row in connection.execute(_DONE, {"study": study})}
    planned = tuple(Planned(volume=each, done=done.get(each.condition.digest, 0)) for each in volumes(loaded))
    left: dict[str, list[Volume]] = defaultdict(list)
    for each in planned:
        left[each.volume.condition.model.name].append(each.left)
    models = tuple(
        _of_model(model, left[model.name], _capacity(connection, model, pools), loaded.study.retry.invalid)
        for model in loaded.study.models
    )
    return Forecast(study=study, planned=planned, models=models, known=connection is not None)


def _of_model(model: Model, left: Sequence[Volume], capacity: Capacity, retries: int) -> ModelForecast:
    jobs, answers = sum(each.jobs for each in left), sum(each.answer_tokens for each in left)
    known = [each.prompt_tokens for each in left if each.prompt_tokens is not None]
    prompts = sum(known) if len(known) == len(left) else None
    return ModelForecast(
        model=model.name,
        jobs=jobs,
        prompt_tokens=prompts,
        answer_tokens=answers,
        takes=duration(jobs, prompts, answers, capacity) if jobs else None,
        dollars=cost(prompts, answers, capacity.pools),
        retries=retries,
    )


def _capacity(connection: Connection | None, model: Model, pools: Mapping[str, Pool]) -> Capacity:
    """What there is to ask `model` with now."""
    named = tuple(pools[name] for name in pools_of(model) if name in pools)
    if connection is None:
        return Capacity(pools=named)
    tag = whole_tag(model.model) if isinstance(model, OllamaModel) else None
    scope = {"queue": queue_for(model), "tag": tag, "seen": WORKER_SEEN_S, "latest": LATEST_CALLS}
    pace_s = connection.execute(_PACE, scope).scalar_one()
    now = datetime.now(UTC)
    daily = [pool for pool in named if pool.rpd is not None]
    return Capacity(
        slots=connection.execute(_SLOTS, scope).scalar_one(),
        pace_s=None if pace_s is None else float(pace_s),
        pools=named,
        used_today={pool.name: calls_since(connection, pool.name, day_start(pool, now)) for pool in daily},
    )
