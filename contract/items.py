"""Items: one question with its choices, the unit that everything is asked about."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

UNKNOWN = "UNKNOWN"
"""The group of the choice that says that it cannot be known."""


def canonical_digest(value: object) -> str:
    """Sha-256 (hex) of `value` as canonical JSON: sorted keys, no spaces, text as it is."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True, kw_only=True)
class Item:
    """One question of one dataset.

    `choices` stand in canonical order (preferred first, or the first out-of-context answer first) and are known by
    index. `target` is the index of the right or preferred choice, None where no choice is right. `cluster` names what
    shares content with other items (paragraph, thread): intervals resample whole clusters. `groups` says of which group
    each choice speaks (M, F, UNKNOWN), where it speaks of one. `traits` is what scores need to know beyond that, by
    name: JSON values that belong to the question and not to any answer. `statements` says each choice as a statement to
    agree with, None for a choice that has none (a refusal, UNKNOWN).
    """

    dataset: str
    source_id: str
    question: str
    choices: tuple[str, ...]
    target: int | None
    cluster: str
    context: str | None = None
    language: str | None = None
    groups: tuple[str, ...] | None = None
    traits: Mapping[str, Any] = field(default_factory=dict, hash=False)
    statements: tuple[str | None, ...] | None = None

    @property
    def opinions(self) -> tuple[int, ...]:
        """The choices that say something, by their numbers from 1: not UNKNOWN, nor the refusal to answer."""
        refused = self.traits.get("refused")
        silent = {refused} if self.groups is None else {at for at, group in enumerate(self.groups) if group == UNKNOWN}
        return tuple(index + 1 for index in range(len(self.choices)) if index not in silent)

    @property
    def payload(self) -> dict[str, Any]:
        """What the item's row stores; groups and traits are no part of what is asked."""
        more: dict[str, Any] = {} if self.groups is None else {"groups": list(self.groups)}
        if self.traits:
            more["traits"] = dict(self.traits)
        return self.asked | more

    @property
    def asked(self) -> dict[str, Any]:
        """What models see of it, and the target: what the digest covers. What is not there is left out."""
        more = {} if self.statements is None else {"statements": list(self.statements)}
        return more | {
            "question": self.question,
            "choices": list(self.choices),
            "target": self.target,
            "context": self.context,
            "language": self.language,
        }

    @cached_property
    def digest(self) -> str:
        """The content digest: equal for equal content, whatever the source id."""
        return canonical_digest(self.asked)

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
            groups=tuple(payload["groups"]) if "groups" in payload else None,
            traits=payload.get("traits", {}),
            statements=tuple(payload["statements"]) if "statements" in payload else None,
        )
