"""What can be seen of a study's models before anything is written: addresses, keys, names, hosts.

A worker may see more than this machine does, and may have other keys. So only what is wrong wherever one looks from is
a fault; the rest is a note, and the first contact of a worker decides.
"""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from difflib import get_close_matches

from contract.models import GeminiModel, Model, OllamaModel, OpenAIModel, pools_of
from contract.pools import Pool
from contract.settings import pools_file
from ops.cli.connect import Connected
from ops.cli.machines import known_pools
from ops.cli.terminal import err, visible
from ops.waiting import hosts_at_work, listed
from producer.loaded_study import LoadedStudy
from worker.contact import stop_reason
from worker.providers import open_provider
from worker.providers.base import MisconfiguredError, ProviderError

LOOKS_AT_ONCE = 16
SHOWN = 20


@dataclass(frozen=True, kw_only=True)
class Seen:
    """What speaks against a model, None if nothing does; `fault` says that it cannot go well."""

    problem: str | None = None
    fault: bool = False


def check_models(connected: Connected, loaded: LoadedStudy) -> None:
    """Name what is wrong with models at once. A study of which no model can be asked is refused."""
    pools = known_pools()
    # All at once: one that cannot be reached keeps its client waiting for many seconds.
    with ThreadPoolExecutor(LOOKS_AT_ONCE) as threads:
        seen = list(threads.map(lambda model: _look(connected, model, pools), loaded.study.asked_models))
    if all(each.fault for each in seen):
        more = f" (and {len(seen) - 1} more to mend)" if len(seen) > 1 else ""
        raise loaded.refuse(("models", 0, "model"), f"{seen[0].problem}{more}")
    for model, each in zip(loaded.study.asked_models, seen, strict=True):
        if each.problem is not None:
            others = "; the other models go on" if each.fault else ""
            err.print(visible(f"note: {model.name}: {each.problem}{others}"))


def _look(connected: Connected, model: Model, pools: dict[str, Pool]) -> Seen:
    problem = _wrong_pool(model, pools)
    if problem is not None:
        return Seen(problem=problem)
    match model:
        case OllamaModel():
            return _look_at_hosts(connected, model)
        case OpenAIModel() | GeminiModel():
            return _look_at_server(connected, model, pools)
    return Seen()


def _wrong_pool(model: Model, pools: dict[str, Pool]) -> str | None:
    """Why the model cannot go through one of its pools, as far as the pools file here is the workers' too."""
    for name in pools_of(model):
        if name in pools and pools[name].provider != model.provider:
            return f"uses the pool {name}, which is one of {pools[name].provider}: the workers will ask nothing"
        if name not in pools and pools_file() is None:
            return f"uses the pool {name}, and no pools file is here: the workers need one, named with BOTHWAYS_POOLS"
        if name not in pools:
            known = ", ".join(pools) or "none"
            return f"uses the pool {name}, which {pools_file()} lacks; it has: {known}"
    return None


def _look_at_server(connected: Connected, model: OpenAIModel | GeminiModel, pools: dict[str, Pool]) -> Seen:
    if isinstance(model, OpenAIModel) and _nowhere(connected, model, pools):
        problem = "names no base_url and no embedded server runs here: add base_url, or start `bothways up`"
        return Seen(problem=problem, fault=True)
    names = pools_of(model)
    try:
        offered = open_provider(model, connected.settings, pools[names[0]] if names else None).models()
    except MisconfiguredError as error:
        return Seen(problem=f"could not be asked from here: {stop_reason(model, error)}; the workers will tell")
    except ProviderError as error:
        return Seen(problem=f"could not be asked from here which models it serves: {error}")
    wanted = model.model.removeprefix("models/")
    if offered is None or wanted in offered:
        return Seen()
    near = get_close_matches(wanted, offered, n=1)
    hint = f"did you mean {near[0]}? " if near else ""
    known = listed(offered, SHOWN)
    return Seen(problem=f"the server offers no model {model.model!r}; {hint}it offers: {known}", fault=True)


def _nowhere(connected: Connected, model: OpenAIModel, pools: dict[str, Pool]) -> bool:
    addresses = [model.base_url, connected.settings.embedded_url, *(pools[name].base_url for name in pools_of(model))]
    return not any(addresses)


def _look_at_hosts(connected: Connected, model: OllamaModel) -> Seen:
    """A host may come later, so that none has the model is a note."""
    hosts = hosts_at_work(connected.engine)
    return Seen(problem=hosts.lack(model.model))
