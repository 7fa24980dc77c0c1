"""Items: one question with its choices, the unit that everything is asked about."""

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property
from typing import Any


def canonical_digest(value: object) -> str:
    """Sha-256 (hex) of `value` as canonical JSON: sorted keys, no spaces, text as it is."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True, kw_only=True)
class Item:
    """One question of one dataset.

    `choices` stand in canonical order (preferred first, or the first out-of-context answer first) and are known by
    index. `target` is the index of the right or preferred choice, None where no choice is right. `cluster` names what
    shares content with other items (paragraph, thread): intervals resample whole clusters.
    """

    dataset: str
    source_id: str
    question: str
    choices: tuple[str, ...]
    target: int | None
    cluster: str
    context: str | None = None
    language: str | None = None

    @property
    def payload(self) -> dict[str, Any]:
        """What the item's row stores, and what its digest covers."""
        return {
            "question": self.question,
            "choices": list(self.choices),
            "target": self.target,
            "context": self.context,
            "language": self.language,
        }

    @cached_property
    def digest(self) -> str:
        """The content digest: equal for equal content, whatever the source id."""
        return canonical_digest(self.payload)

    @classmethod
    def from_payload(cls, *, dataset: str, source_id: str, cluster: str, payload: dict[str, Any]) -> "Item":
        """The item behind a row; the inverse of `payload`."""
        return cls(
            dataset=dataset,
            source_id=source_id,
            cluster=cluster,
            question=payload["question"],
            choices=tuple(payload["choices"]),
            target=payload["target"],
            context=payload["context"],
            language=payload["language"],
        )
