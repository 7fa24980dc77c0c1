"""The seam to whoever serves a model: one request in, one completion out, only our errors raised.

ProviderError
├── TransientError      may pass by itself
│   └── HostError       this host cannot run the model just now: another one may
├── ThrottledError      told to slow down, perhaps for how long
├── ExhaustedError      the quota of the day is spent
├── RefusedError        blocked by the provider: a result, not a fault
├── TooLongError        the prompt does not fit the context
├── MisconfiguredError  wrong key, model or address: nothing else would go better
└── RejectedError       this request only

SDK exceptions never leave a provider: they carry keys and prompts.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal, Protocol, runtime_checkable
from uuid import UUID

from contract.completion import Completion
from contract.errors import BothwaysError, ErrorKind
from contract.forms import Sampling

MESSAGE_LIMIT = 500
"""Characters of a provider's own error text that are kept."""


class ProviderError(BothwaysError):
    """A call that gave no completion."""

    kind: ClassVar[ErrorKind]

    def __init__(self, message: str) -> None:
        super().__init__(message[:MESSAGE_LIMIT])


class TransientError(ProviderError):
    """The fault may pass by itself."""

    kind = ErrorKind.TRANSIENT


class HostError(TransientError):
    """The host failed at running the model: the same call may go well on another.

    `lasting`: this host will fail again as it is, for want of memory.
    """

    def __init__(self, message: str, *, lasting: bool = False) -> None:
        super().__init__(message)
        self.lasting = lasting


class ThrottledError(ProviderError):
    """The server asks for a pause; `wait_s` is what it said, None if it named none."""

    kind = ErrorKind.THROTTLED

    def __init__(self, message: str, *, wait_s: float | None = None) -> None:
        super().__init__(message)
        self.wait_s = wait_s


class ExhaustedError(ProviderError):
    """The quota of the day is spent; the pool knows when its next day begins."""

    kind = ErrorKind.EXHAUSTED


class RefusedError(ProviderError):
    """The provider blocked the prompt or the answer."""

    kind = ErrorKind.REFUSED


class TooLongError(ProviderError):
    """The prompt is longer than the model's context."""

    kind = ErrorKind.TOO_LONG


class MisconfiguredError(ProviderError):
    """Every call would end the same way until a person changes something.

    `credential`: it is the key or its project that is not accepted, so the same model may go well with another one.
    """

    kind = ErrorKind.MISCONFIGURED

    def __init__(self, message: str, *, credential: bool = False) -> None:
        super().__init__(message)
        self.credential = credential


class RejectedError(ProviderError):
    """The server will not take this request; others may pass."""

    kind = ErrorKind.REJECTED


Expected = Literal["letter", "rating", "text", "choice_text"]
"""What kind of answer a prompt asks for."""


@dataclass(frozen=True, kw_only=True)
class Request:
    """One call: the prompt as it is sent, the sampling, the seed of this very call, and the time it may take.

    `call` is the id of the attempt, made before the call, so that any ledger can be matched with the attempts;
    `number` counts the calls of this job in its round, from 1. `allowed`: the only answers that the server may let the
    model give, None where it may say anything. `expects` is what an answer
    to it is: a letter, a rating, any text, the text of a choice.
    """

    call: UUID
    number: int
    prompt: str
    sampling: Sampling
    seed: int
    timeout_s: float
    allowed: tuple[str, ...] | None = None
    expects: Expected = "letter"


@dataclass(frozen=True, kw_only=True)
class Endpoint:
    """Where a provider's calls go, as people may see it: no key, no user name."""

    provider: str
    model: str
    label: str | None


@dataclass(frozen=True, kw_only=True)
class Description:
    """What a server tells of a model without being asked a question; None for what it does not tell.

    `digest` is that of the weights, `template_digest` that of the chat template; `context_length` in tokens, as it is
    served to one request; `slots` requests are answered at a time.
    """

    digest: str | None = None
    quantisation: str | None = None
    context_length: int | None = None
    server_version: str | None = None
    template_digest: str | None = None
    slots: int | None = None


@dataclass(frozen=True, kw_only=True)
class Warmth:
    """How a host runs a model that it has loaded: calls at once, and what a person should know, if anything."""

    slots: int
    note: str | None = None


@runtime_checkable
class Loads(Protocol):
    """A provider whose model must be loaded first."""

    def warm_up(self, most: int, timeout_s: float) -> Warmth:
        """Load the model as calls need it and see how it runs, with up to `most` calls at once.

        Raises only ProviderError.
        """
        ...


class Provider(Protocol):
    """Whoever serves one model."""

    endpoint: Endpoint

    def complete(self, request: Request) -> Completion:
        """Ask exactly once, within `request.timeout_s` in all; raises only ProviderError."""
        ...

    def models(self) -> list[str] | None:
        """The models that the server offers; None where it cannot be asked. Raises only ProviderError."""
        ...

    def describe(self) -> Description:
        """What the server tells of the model. Raises only ProviderError."""
        ...
