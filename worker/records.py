"""The records that a worker passes about: a job in its hands, and one attempt as its row will keep it."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from contract.completion import Completion
from contract.conditions import Rules
from contract.formats import Variant
from contract.items import Item, canonical_digest
from contract.results import LOSSES_ALONE
from worker.providers.base import ProviderError
from worker.retry import Tally


@dataclass(frozen=True, kw_only=True)
class ClaimedJob:
    """One job in this worker's hands, with all that is needed to ask. `claim` is its fencing token.

    `answered`: a lost claim of this round has stored an answer after all. `losses`: workers that died in its calls.
    `earlier` is the text that its parent was answered with, None where it has none.
    """

    id: int
    claim: int
    round: int
    part: int
    repeat: int
    study: int
    queue: str
    item: Item
    variant: Variant
    rules: Rules
    tally: Tally
    answered: bool = False
    losses: int = 0
    earlier: str | None = None

    @property
    def suspect(self) -> bool:
        """Whether it may be what kills its workers."""
        return self.losses >= LOSSES_ALONE

    def seed(self, resample: int) -> int:
        """The seed of a call, 31 bits: equal for both orders of an item, new for each repeat, resample and round."""
        parts = [self.rules.format.sampling.seed, self.item.digest, self.part, self.repeat, resample, self.round]
        return int(canonical_digest(parts)[:8], 16) & 0x7FFF_FFFF


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """One call; absent is None. `prompt` is the text exactly as sent, None if it could not be rendered."""

    id: UUID
    started_at: datetime
    latency_ms: int
    prompt: str | None
    seed: int
    outcome: str
    completion: str | None = None
    completion_length: int | None = None
    thinking: str | None = None
    finish_reason: str | None = None
    tokens_in: int | None = None
    tokens_out: int | None = None
    tokens_cached: int | None = None
    answer: int | None = None
    text: str | None = None
    tier: str | None = None
    reason: str | None = None
    reading: str | None = None
    reading_version: int | None = None
    error_kind: str | None = None
    error_message: str | None = None
    deployment: int | None = None
    pool: str | None = None
    logprobs: dict[str, float] | None = None


@dataclass(frozen=True, kw_only=True)
class Canary:
    """One first-contact call; `contact` is the digest of what was met, `passed` whether its jobs may be asked."""

    id: UUID
    contact: str
    started_at: datetime
    passed: bool
    pool: str | None = None
    completion: str | None = None
    tokens_in: int | None = None
    tokens_out: int | None = None
    error_kind: str | None = None
    error_message: str | None = None
    deployment: int | None = None


@dataclass(frozen=True, kw_only=True)
class Called:
    """What a first-contact call came to, and the pool that it went through."""

    outcome: Completion | ProviderError
    pool: str | None = None


@dataclass(frozen=True, kw_only=True)
class Deployment:
    """What exactly answered, as far as the completion or the server told it."""

    provider: str
    model: str
    endpoint: str | None
    server_version: str | None
    digest: str | None = None
    quantisation: str | None = None
    context_length: int | None = None
    template_digest: str | None = None
