"""What can be seen of a study's models before anything is written: addresses, keys, names, hosts.

A worker may see more than this machine does, and may have other keys. So only what is wrong wherever one looks from is
a fault; the rest is a note, and the first contact of a worker decides.
"""

from dataclasses import dataclass

from contract.models import GeminiModel, Model, OllamaModel, OpenAIModel, pools_of
from contract.pools import Pool, read_pools
from ops.cli.connect import Connected
from ops.cli.terminal import err, visible
from ops.waiting import hosts_at_work
from producer.study_file import LoadedStudy
from worker.providers import open_provider
from worker.providers.base import MisconfiguredError, ProviderError


@dataclass(frozen=True, kw_only=True)
class Seen:
    """What speaks against a model, None if nothing does; `fault` says that it cannot go well."""

    problem: str | None = None
    fault: bool = False


def check_models(connected: Connected, loaded: LoadedStudy) -> None:
    """Name what is wrong with models at once. A study of which no model can be asked is refused."""
    pools = {} if connected.settings.pools_file is None else read_pools(connected.settings.pools_file)
    seen = [_look(connected, model, pools) for model in loaded.study.models]
    if all(each.fault for each in seen):
        raise loaded.refuse(("models", 0, "model"), seen[0].problem or "")
    for model, each in zip(loaded.study.models, seen, strict=True):
        if each.problem is not None:
            others = "; the other models go on" if each.fault else ""
            err.print(visible(f"note: {model.name}: {each.problem}{others}"))


def _look(connected: Connected, model: Model, pools: dict[str, Pool]) -> Seen:
    missing = [name for name in pools_of(model) if name not in pools]
    if missing:
        known = ", ".join(pools) or "there is no pools file here"
        return Seen(problem=f"uses the pool {missing[0]}, which the pools file lacks ({known})")
    match model:
        case OllamaModel():
            return _look_at_hosts(connected, model)
        case OpenAIModel() | GeminiModel():
            return _look_at_server(connected, model, pools)
    return Seen()


def _look_at_server(connected: Connected, model: OpenAIModel | GeminiModel, pools: dict[str, Pool]) -> Seen:
    if isinstance(model, OpenAIModel) and _nowhere(connected, model, pools):
        problem = "names no base_url and no embedded server runs here: add base_url, or start `bothways up`"
        return Seen(problem=problem, fault=True)
    names = pools_of(model)
    try:
        offered = open_provider(model, connected.settings, pools[names[0]] if names else None).models()
    except MisconfiguredError as error:
        return Seen(problem=f"could not be asked from here ({error}); the workers will tell")
    except ProviderError as error:
        return Seen(problem=f"could not be asked from here which models it serves ({error})")
    wanted = model.model.removeprefix("models/")
    if offered is None or wanted in offered:
        return Seen()
    known = ", ".join(offered[:20]) or "none"
    more = f" and {len(offered) - 20} more" if len(offered) > 20 else ""
    return Seen(problem=f"the server offers no model {model.model!r}; it offers: {known}{more}", fault=True)


def _nowhere(connected: Connected, model: OpenAIModel, pools: dict[str, Pool]) -> bool:
    addresses = [model.base_url, connected.settings.embedded_url, *(pools[name].base_url for name in pools_of(model))]
    return not any(addresses)


def _look_at_hosts(connected: Connected, model: OllamaModel) -> Seen:
    """A host may come later, so that none has the model is a note."""
    hosts = hosts_at_work(connected.engine)
    return Seen(problem=hosts.lack(model.model))
