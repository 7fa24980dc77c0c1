"""The Gemini API, through Google's own client."""

import logging
import math
import re
import ssl
import weakref

import httpx2
from google import genai
from google.genai import types
from google.genai.client import DebugConfig

from contract.completion import Completion
from contract.models import GeminiModel
from worker.providers.base import (
    Description,
    Endpoint,
    MisconfiguredError,
    RefusedError,
    Request,
    TransientError,
)
from worker.providers.deadline import DeadlineTransport, deadline
from worker.providers.gemini_errors import translated
from worker.providers.gemini_thinking import thinking_config

_ADDRESS = "https://generativelanguage.googleapis.com"
_VERSION = "v1"
_VERSIONS = ("v1", "v1alpha", "v1beta")
_LIST_TIMEOUT_S = 10.0
_PAGE = 1000
_CONNECTIONS = 256
# Ephemeral tokens look like keys, but the client sends them to another API only.
_KEY = re.compile(r"(?!auth_tokens/)[!-~]+")
_NAME = re.compile(r"(?!.*\.\.)[A-Za-z0-9._/@-]+")
# Without X-Server-Timeout: the API answers one of less than ten seconds with an error.
_SENT_HEADERS = frozenset(
    (
        "accept",
        "accept-encoding",
        "connection",
        "content-length",
        "content-type",
        "host",
        "user-agent",
        "x-goog-api-key",
    )
)
_BLOCKED = frozenset(
    ("SAFETY", "PROHIBITED_CONTENT", "BLOCKLIST", "SPII", "MODEL_ARMOR", "IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT")
)
_FINISHES = {"STOP": "stop", "MAX_TOKENS": "length"}
_HARMS = (
    types.HarmCategory.HARM_CATEGORY_HARASSMENT,
    types.HarmCategory.HARM_CATEGORY_HATE_SPEECH,
    types.HarmCategory.HARM_CATEGORY_SEXUALLY_EXPLICIT,
    types.HarmCategory.HARM_CATEGORY_DANGEROUS_CONTENT,
)


class GeminiProvider:
    """One model behind one key. The client is shared by all threads of a process."""

    def __init__(self, model: GeminiModel, *, api_key: str) -> None:
        """MisconfiguredError for a key or a model's name that cannot be sent.

        `base_url` may end with the version of the API, as in "https://host/v1beta".
        """
        self._model = model.model
        self._options = model.options
        self._key = api_key.strip()
        if not _KEY.fullmatch(self._key):
            raise MisconfiguredError(f"model {model.name}: its key is none that can be sent", credential=True)
        if not _NAME.fullmatch(self._model):
            raise MisconfiguredError(f"model {model.name}: no model of this API has such a name: {self._model}")
        address, version = _split(model.base_url or _ADDRESS)
        url = httpx2.URL(address)
        label = f"{url.host}:{url.port}" if url.port else url.host
        self.endpoint = Endpoint(provider="gemini", model=model.model, label=label)
        http = httpx2.Client(
            transport=DeadlineTransport(connections=_CONNECTIONS),
            follow_redirects=False,
            trust_env=False,
            event_hooks={"request": [_strip_headers]},
        )
        self._client = _open_client(address, version, self._key, http)
        # The SDK leaves a client that it was given open.
        weakref.finalize(self, http.close)

    def complete(self, request: Request) -> Completion:
        """Ask once and be back within `request.timeout_s` however slowly the server answers."""
        with translated(self._key, request.prompt, model=self._model), deadline(request.timeout_s):
            response = self._client.models.generate_content(
                model=self._model,
                contents=[types.Content(role="user", parts=[types.Part(text=request.prompt)])],
                config=self._config(request),
            )
            return _completion(response)

    def models(self) -> list[str] | None:
        """The names that the server lists, page by page."""
        with translated(self._key, model=self._model), deadline(_LIST_TIMEOUT_S):
            config = types.ListModelsConfig(page_size=_PAGE, http_options=_timeout(_LIST_TIMEOUT_S))
            names = [model.name for model in self._client.models.list(config=config)]
            return [name.removeprefix("models/") for name in names if name]

    def describe(self) -> Description:
        """Nothing: the API tells neither weights nor templates."""
        return Description()

    def _config(self, request: Request) -> types.GenerateContentConfig:
        """All that is sent beside the prompt; nothing that would make several requests of one."""
        sampling = request.sampling
        thinking = thinking_config(self._model, self._options.thinking)
        room = 0 if thinking.thinking_budget == 0 else self._options.room
        config = types.GenerateContentConfig(
            temperature=sampling.temperature,
            top_p=sampling.top_p,
            seed=request.seed,
            max_output_tokens=sampling.max_tokens + room,
            thinking_config=thinking,
            automatic_continuation=False,
            automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
            http_options=_timeout(request.timeout_s),
        )
        if sampling.logprobs:
            config.response_logprobs = True
            config.logprobs = sampling.logprobs
        if request.allowed:
            config.response_mime_type = "text/x.enum"
            config.response_schema = types.Schema(type=types.Type.STRING, enum=list(request.allowed))
        if self._options.safety == "none":
            threshold = types.HarmBlockThreshold.BLOCK_NONE
            config.safety_settings = [types.SafetySetting(category=harm, threshold=threshold) for harm in _HARMS]
        return config


def _split(base_url: str) -> tuple[str, str]:
    """The address without the version of the API, and that version."""
    address, _, last = base_url.rstrip("/").rpartition("/")
    return (address, last) if last in _VERSIONS else (base_url, _VERSION)


def _open_client(address: str, version: str, key: str, http: httpx2.Client) -> genai.Client:
    """A client that takes nothing from the environment: whatever is left open here, the SDK looks up there.

    It looks all the same, and warns that it uses a key from there, which is not so: the one that it is given wins.
    """
    logging.getLogger("google_genai._api_client").setLevel(logging.ERROR)
    # For the ways of the SDK that are never taken: it trusts nobody, and no file of certificates is read for it.
    unused = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    return genai.Client(
        enterprise=False,
        api_key=key,
        debug_config=DebugConfig(client_mode=None, replays_directory=None, replay_id=None),
        http_options=types.HttpOptions(
            base_url=address,
            api_version=version,
            retry_options=types.HttpRetryOptions(attempts=1),
            httpx_client=http,
            async_client_args={"trust_env": False, "verify": unused, "ssl": unused},
        ),
    )


def _strip_headers(request: httpx2.Request) -> None:
    """Send what the protocol needs and nothing that the SDK adds of its own."""
    for name in set(request.headers) - _SENT_HEADERS:
        del request.headers[name]


def _timeout(seconds: float) -> types.HttpOptions:
    """What the SDK takes as the longest wait for each read, in its milliseconds."""
    return types.HttpOptions(timeout=math.ceil(seconds * 1000))


def _completion(response: types.GenerateContentResponse) -> Completion:
    """What was answered; RefusedError for what was blocked, TransientError for JSON of another kind."""
    usage, feedback = response.usage_metadata, response.prompt_feedback
    if response.candidates is None and feedback is None and usage is None:
        raise TransientError("not an answer of this protocol: neither candidates nor usage")
    if feedback is not None and feedback.block_reason is not None:
        raise RefusedError(f"the prompt was blocked: {feedback.block_reason.value}")
    candidate = response.candidates[0] if response.candidates else types.Candidate()
    reason = candidate.finish_reason.value if candidate.finish_reason else None
    if reason in _BLOCKED:
        raise RefusedError(f"the answer was blocked: {reason}")
    parts = (candidate.content.parts if candidate.content else None) or []
    text = "".join(part.text or "" for part in parts if not part.thought)
    return Completion(
        text=text,
        thinking="".join(part.text or "" for part in parts if part.thought) or None,
        finish_reason=_FINISHES.get(reason, reason.lower()) if reason else None,
        tokens_in=usage.prompt_token_count if usage else None,
        tokens_out=_tokens_out(usage) if usage else None,
        tokens_cached=usage.cached_content_token_count if usage else None,
        model_reported=response.model_version,
        logprobs=_first_token(candidate.logprobs_result) if candidate.logprobs_result else None,
    )


def _tokens_out(usage: types.GenerateContentResponseUsageMetadata) -> int | None:
    """The answer's tokens with those of thinking, which the API counts apart."""
    counts = (usage.candidates_token_count, usage.thoughts_token_count)
    return None if counts == (None, None) else sum(count or 0 for count in counts)


def _first_token(logprobs: types.LogprobsResult) -> dict[str, float] | None:
    """The candidates for the first token, the best first."""
    candidates = (logprobs.top_candidates[0].candidates if logprobs.top_candidates else None) or []
    named = [(one.token, one.log_probability) for one in candidates if one.token is not None]
    known = [(token, value) for token, value in named if value is not None and math.isfinite(value)]
    best: dict[str, float] = {}
    for token, value in sorted(known, key=lambda pair: pair[1], reverse=True):
        best.setdefault(token, value)
    return best or None
