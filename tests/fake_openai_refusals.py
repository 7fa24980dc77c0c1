"""How OpenAI-compatible servers refuse: status, body and headers, in the words that they really use."""

from collections.abc import Mapping
from typing import Any

Refusal = tuple[int, object, Mapping[str, str]]


def error(message: str, **more: object) -> dict[str, Any]:
    """The body of an error."""
    return {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": None} | more}


def _refusal(status: int, body: object, **headers: str) -> Refusal:
    return status, error(body) if isinstance(body, str) else body, headers


def _page(status: int, body: str, **headers: str) -> Refusal:
    return status, f"<html><body>{body}</body></html>", headers


def _vllm(message: str, status: int = 400) -> Refusal:
    return status, {"object": "error", "message": message, "type": "BadRequestError", "param": None, "code": 400}, {}


def _llama_cpp(status: int, message: str, kind: str, **more: object) -> Refusal:
    return status, {"error": {"code": status, "message": message, "type": kind} | more}, {}


_LIMIT = "Rate limit reached for gpt-x in organization org-1 on"

REFUSALS: Mapping[str, Refusal] = {
    "401": _refusal(401, error("Incorrect API key provided.", code="invalid_api_key")),
    "402": _refusal(402, "Insufficient credits. Add more."),
    "403": _refusal(403, "Country not supported."),
    "403-flagged": _refusal(403, error("This model needs moderation and your input was flagged.", code=403)),
    "404": _refusal(404, error("The model does not exist.", code="model_not_found")),
    "400": _refusal(400, "Unknown parameter: 'seed'."),
    "400-filtered": _refusal(400, error("The prompt triggered our content policy.", code="content_filter")),
    "400-key": _refusal(400, [error("API key not valid. Please pass a valid API key.", status="INVALID_ARGUMENT")]),
    "422": _refusal(422, "temperature: Input should be less than 2"),
    "422-detail": _refusal(422, {"detail": "seed: Extra inputs are not permitted"}),
    "too-long-openai": _refusal(
        400, error("This model's maximum context length is 8192 tokens.", code="context_length_exceeded")
    ),
    "too-long-vllm": _vllm("This model's maximum context length is 4096 tokens. However, you requested 5000 tokens."),
    "too-long-vllm-newer": _vllm(
        "The decoder prompt (length 5000) is longer than the maximum model length of 4096. Make sure that "
        "`max_model_len` is no smaller than the number of text tokens."
    ),
    "too-long-llama.cpp": _llama_cpp(
        400,
        "request (700 tokens) exceeds the available context size (512 tokens), try increasing it",
        "exceed_context_size_error",
        n_prompt_tokens=700,
        n_ctx=512,
    ),
    "413": _refusal(413, "Request too large."),
    "429": _refusal(429, "Rate limit reached."),
    "429-wait": _refusal(429, "Rate limit reached.", Retry_After="7.5"),
    "429-milliseconds": _refusal(429, "Rate limit reached.", Retry_After_Ms="1250", Retry_After="2"),
    "429-date": _refusal(429, "Rate limit reached.", Retry_After="Wed, 21 Oct 2037 07:28:00 GMT"),
    "429-past": _refusal(429, "Rate limit reached.", Retry_After="Wed, 21 Oct 2015 07:28:00 GMT"),
    "429-for-ever": _refusal(429, "Rate limit reached.", Retry_After="inf"),
    "429-in-words": _refusal(429, f"{_LIMIT} tokens per min (TPM): Limit 100. Please try again in 1m2.5s. Visit us."),
    "429-quota-and-wait": _refusal(
        429, [error("You exceeded your current quota, check your plan and billing. Please retry in 47.17s.", code=429)]
    ),
    "429-unpaid": _refusal(
        429, error("You exceeded your current quota.", type="insufficient_quota", code="insufficient_quota")
    ),
    "429-billing-limit": _refusal(429, error("Hard limit.", code="billing_hard_limit_reached"), Retry_After="1"),
    "429-quota-and-billing": _refusal(429, "Quota exceeded: see your billing details."),
    "429-rpd": _refusal(429, f"{_LIMIT} requests per day (RPD): Limit 200, Used 200. Please try again in 7m12s."),
    "429-tpd": _refusal(429, f"{_LIMIT} tokens per day (TPD): Limit 9, Used 9."),
    "429-free-per-day": _refusal(429, error("Rate limit exceeded: free-models-per-day.", code=429)),
    "500": _refusal(500, "The server had an error."),
    "500-cuda-vllm": _vllm("CUDA out of memory. Tried to allocate 2.00 GiB.", status=500),
    "500-cuda-llama.cpp": _llama_cpp(500, "CUDA error: out of memory", "server_error"),
    "503": _page(503, "<h1>503 Service Unavailable</h1>"),
    "503-loading": _llama_cpp(503, "Loading model", "unavailable_error"),
    "html": _page(200, "Please log in"),
    "redirect": _page(307, "moved", Location="/v1/elsewhere"),
}
