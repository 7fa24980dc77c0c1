"""What `/v1/models` and llama.cpp's `/props` tell of a served model; whatever is missing or of another kind is None."""

import hashlib
from typing import Any

from worker.providers.base import Description


def described(model: str, *, listed: object, props: object) -> Description:
    """The description of `model` out of the two answers as JSON gave them; None for one that the server has not.

    The context is the one that is served: `max_model_len` of vLLM, `n_ctx` of one slot of llama.cpp; never what the
    model was trained with.
    """
    entry = next((one for one in _list(_dict(listed).get("data")) if _dict(one).get("id") == model), None)
    meta, told = _dict(_dict(entry).get("meta")), _dict(props)
    template = _text(told.get("chat_template"))
    return Description(
        quantisation=_text(told.get("model_ftype")) or _text(meta.get("ftype")),
        context_length=_count(_dict(told.get("default_generation_settings")).get("n_ctx"))
        or _count(_dict(entry).get("max_model_len"))
        or _count(meta.get("n_ctx")),
        server_version=_text(told.get("build_info")),
        template_digest=template and hashlib.sha256(template.encode("utf-8", "surrogatepass")).hexdigest(),
        slots=_count(told.get("total_slots")),
    )


def _dict(said: object) -> dict[str, Any]:
    return said if isinstance(said, dict) else {}


def _list(said: object) -> list[Any]:
    return said if isinstance(said, list) else []


def _text(said: object) -> str | None:
    return said if isinstance(said, str) and said else None


def _count(said: object) -> int | None:
    return said if isinstance(said, int) and not isinstance(said, bool) and said > 0 else None
