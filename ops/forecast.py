"""What a study will take: the plan's volumes, less what is done, on the slots and quotas at hand."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, Engine, text

from contract.conditions import queue_for
from contract.database import postgres_errors
from contract.models import Model, OllamaModel, pools_of, whole_tag
from contract.pools import Pool, day_start, next_boundaries
from contract.recorded import RecordedModel
from ops.pools import calls_since
from producer.forecast import DAY_S, Capacity, Duration, Load, Volume, cost, together, volumes
from producer.loaded_study import LoadedStudy
from producer.window import WORKER_SEEN_S

LATEST_CALLS = 2_000
"""From so many calls of a model its pace is taken."""

ROWS_AT_ONCE = 10_000

# Without the invalid jobs that the next run opens again, as it would after a raised retry count.
_DONE = text("""
    SELECT condition.digest AS condition, item.source_id, item.digest AS item
    FROM job JOIN study ON study.id = job.study JOIN condition ON condition.id = job.condition
    JOIN item ON item.id = job.item
    WHERE study.name = :study AND job.finished_at IS NOT NULL AND job.repeat <= :repeats AND (
        job.state = 'invalid' AND :invalid > (
            SELECT (spec -> 'retry' ->> 'invalid')::int FROM study_revision
            WHERE study_revision.study = study.id AND study_revision.revision = study.revision
        ) AND (
            SELECT count(*) FROM attempt
            WHERE attempt.job = job.id AND attempt.round = job.round AND attempt.outcome = 'invalid'
        ) BETWEEN 1 AND :invalid) IS NOT TRUE
""")
_PACE = text("""
    SELECT avg(latency_ms) / 1000.0 FROM (
        SELECT latency_ms FROM attempt JOIN job ON job.id = attempt.job
        WHERE job.queue = :queue AND attempt.outcome <> 'no_completion'
        ORDER BY attempt.started_at DESC LIMIT :latest) AS latest
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
    """What is left of one model: jobs, tokens, how long it takes alone (None: nothing is known of that), what it costs.

    `dollars` are for the prompts alone, and with every answer at its budget and every retry. `retries` is how often an
    answer that cannot be read may be asked for again; in jobs, tokens and time such calls come on top.
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
    """A whole study. `known` says whether a database was there to tell what is done and who is at work.

    `takes` is the time of all models, None if there is a model whose time is not known; `untimed` names those.
    """

    study: str
    planned: tuple[Planned, ...]
    models: tuple[ModelForecast, ...]
    takes: Duration | None
    untimed: tuple[str, ...]
    known: bool

    @property
    def unpriced(self) -> tuple[str, ...]:
        """The models with something left to do whose costs are not known."""
        return tuple(model.model for model in self.models if model.jobs and model.dollars is None)


def forecast(loaded: LoadedStudy, engine: Engine | None, pools: Mapping[str, Pool], *, now: datetime) -> Forecast:
    """The forecast of a study at `now` (aware); without a database nothing is done and nobody is at work.

    Writes nothing.
    """
    if engine is None:
        return _forecast(loaded, None, pools, now)
    with postgres_errors(engine), engine.connect() as connection:
        return _forecast(loaded, connection, pools, now)


def _forecast(loaded: LoadedStudy, connection: Connection | None, pools: Mapping[str, Pool], now: datetime) -> Forecast:
    all_volumes = list(volumes(loaded))
    done = Counter[str]() if connection is None else _done(connection, loaded, all_volumes)
    planned = tuple(Planned(volume=each, done=done[each.condition.digest]) for each in all_volumes)
    left: dict[str, list[Volume]] = defaultdict(list)
    for each in planned:
        left[each.volume.condition.model.name].append(each.left)
    asked = [model for model in loaded.study.asked_models if not isinstance(model, RecordedModel)]
    loads = [_load(model, left[model.name], _capacity(connection, model, pools, now)) for model in asked]
    takes, untimed = together(loads)
    return Forecast(
        study=loaded.study.study,
        planned=planned,
        models=tuple(_of_model(load, loaded.study.retry.invalid) for load in loads),
        takes=takes,
        untimed=untimed,
        known=connection is not None,
    )


def _done(connection: Connection, loaded: LoadedStudy, all_volumes: Sequence[Volume]) -> Counter[str]:
    """How many jobs are done by condition, of those that the study has now; all that are stored without its items."""
    datasets = {each.condition.digest: each.condition.dataset for each in all_volumes}
    items = {name: {(item.source_id, item.digest) for item in group} for name, group in loaded.items.items()}
    study = loaded.study
    scope = {"study": study.study, "repeats": study.repeats, "invalid": study.retry.invalid}
    done = Counter[str]()
    for row in connection.execute(_DONE, scope, execution_options={"yield_per": ROWS_AT_ONCE}):
        dataset = datasets.get(row.condition)
        if dataset is not None and (dataset in loaded.expected or (row.source_id, row.item) in items[dataset]):
            done[row.condition] += 1
    return done


def _load(model: Model, left: Sequence[Volume], capacity: Capacity) -> Load:
    known = [each.prompt_tokens for each in left if each.prompt_tokens is not None]
    return Load(
        model=model.name,
        jobs=sum(each.jobs for each in left),
        prompt_tokens=sum(known) if len(known) == len(left) else None,
        answer_tokens=sum(each.answer_tokens for each in left),
        capacity=capacity,
        in_turn=isinstance(model, OllamaModel),
    )


def _of_model(load: Load, retries: int) -> ModelForecast:
    return ModelForecast(
        model=load.model,
        jobs=load.jobs,
        prompt_tokens=load.prompt_tokens,
        answer_tokens=load.answer_tokens,
        takes=load.alone,
        dollars=cost(load.prompt_tokens, load.answer_tokens, load.capacity.pools, retries=retries),
        retries=retries,
    )


def _capacity(connection: Connection | None, model: Model, pools: Mapping[str, Pool], now: datetime) -> Capacity:
    """What there is to ask `model` with at `now`."""
    named = tuple(pools[name] for name in pools_of(model) if name in pools)
    daily = [pool for pool in named if pool.rpd is not None]
    next_day_s = (next_boundaries(daily[0], now)[0] - now).total_seconds() if daily else DAY_S
    if connection is None:
        return Capacity(pools=named, next_day_s=next_day_s)
    tag = whole_tag(model.model) if isinstance(model, OllamaModel) else None
    scope = {"queue": queue_for(model), "tag": tag, "seen": WORKER_SEEN_S, "latest": LATEST_CALLS}
    pace_s = connection.execute(_PACE, scope).scalar_one()
    return Capacity(
        slots=connection.execute(_SLOTS, scope).scalar_one(),
        pace_s=None if pace_s is None else float(pace_s),
        pools=named,
        used_today={pool.name: calls_since(connection, pool.name, day_start(pool, now)) for pool in daily},
        next_day_s=next_day_s,
    )
