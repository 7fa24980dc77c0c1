"""Each model of a study, looked at as a worker would at first contact: key, address, name, digest, one answer."""

from collections.abc import Iterator, Mapping

from redis import Redis
from sqlalchemy import Engine, text

from contract.conditions import Rules
from contract.items import canonical_digest
from contract.models import Model, OllamaModel, SimulatedModel
from contract.pools import Pool
from contract.recorded import RecordedModel
from contract.settings import Settings
from ops.check import Line, State, ok
from ops.waiting import hosts_at_work
from producer.loaded_study import LoadedStudy
from producer.plan import plan_conditions
from worker.checkup import Checked, Checkup

SHOWN = 12
_STUDY = text("SELECT id FROM study WHERE name = :name")


def check_models(
    engine: Engine, settings: Settings, broker: Redis, loaded: LoadedStudy, pools: Mapping[str, Pool], *, calls: bool
) -> Iterator[Line]:
    """A line for each model, after one call at most for each model of an API."""
    checkup = Checkup(engine, settings, broker, pools)
    with engine.connect() as connection:
        study = connection.execute(_STUDY, {"name": loaded.study.study}).scalar_one_or_none()
    seen: dict[str, Checked] = {}
    for model, rules in _rules(loaded):
        about = f"model {model.name}"
        if isinstance(model, SimulatedModel):
            yield ok(about, "simulated; there is nobody to ask")
        elif isinstance(model, RecordedModel):
            yield ok(about, "recorded; `bothways import` brings its answers")
        elif isinstance(model, OllamaModel):
            yield _on_hosts(engine, model, about)
        else:
            same = _deployment(model, rules)
            checked = seen[same] = seen.get(same) or checkup.check(rules, study=study, call=calls)
            yield _line(about, model, checked, calls=calls)
            if calls and checked.problem is None and study is not None and checkup.clear(study, rules):
                yield ok(about, "was stopped, and may be asked again")


def _rules(loaded: LoadedStudy) -> Iterator[tuple[Model, Rules]]:
    """One way of asking for each model: its conditions differ in nothing that a first contact looks at."""
    seen: set[str] = set()
    for condition, rules in plan_conditions(loaded).values():
        if condition.model.name not in seen:
            seen.add(condition.model.name)
            yield condition.model, rules


def _deployment(model: Model, rules: Rules) -> str:
    """What tells one first contact from another: the form, and all of the model but the name that a study gives it."""
    return canonical_digest([model.model_dump(mode="json", exclude={"name"}), rules.stored["format"]])


def _on_hosts(engine: Engine, model: OllamaModel, about: str) -> Line:
    """What the workers of GPU hosts tell. Nobody is asked: that would load the model in front of others' work."""
    lack = hosts_at_work(engine).lack(model.model)
    if lack is None:
        return ok(about, f"a host at work has {model.model}; its worker makes the first contact")
    return Line(state=State.FAIL, about=about, said=lack)


def _line(about: str, model: Model, checked: Checked, *, calls: bool) -> Line:
    if checked.problem is not None:
        remedy = "it may pass; check again" if checked.passing else "mend that, then check again"
        return Line(
            state=State.WARN if checked.passing else State.FAIL, about=about, said=checked.problem, remedy=remedy
        )
    wanted = model.model.removeprefix("models/")
    if not calls and checked.offered is not None and wanted not in checked.offered:
        known = ", ".join(checked.offered[:SHOWN]) or "none"
        said = f"the server offers no model {wanted}"
        return Line(state=State.FAIL, about=about, said=said, remedy=f"it offers: {known}")
    told = checked.description
    facts = {
        "at": checked.label,
        "digest": told.digest and told.digest[:SHOWN],
        "quantised as": told.quantisation,
        "context": told.context_length,
        "version": told.server_version,
    }
    known = ", ".join(f"{name} {value}" for name, value in facts.items() if value is not None)
    return ok(about, f"{'answers' if calls else 'is offered'} ({known})")
