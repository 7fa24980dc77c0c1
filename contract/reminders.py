"""The sentence that is added to a prompt whose answer could not be read, where the study wants to remind."""

from contract.orders import letters_for
from contract.prompts import fill
from contract.study import Retry

_OR = {"en": "or", "it": "o"}
_SENTENCES = {
    "en": "Answer with one letter and nothing else: {letters}.",
    "it": "Rispondi con una sola lettera e nient'altro: {letters}.",
}


def reminder(rules: Retry, language: str | None, choices: int) -> str:
    """The sentence for an item of `language` with so many choices; 0 where it is to be answered with any text.

    ValueError where the study gives none and we have none in that language; an item without language is taken for
    English. A sentence of the study's own may place {letters} and nothing else in braces.
    """
    known = language or "en"
    sentence = rules.reminder or _SENTENCES.get(known)
    if sentence is None:
        raise ValueError(
            f"no reminder in the language {known!r}; give the sentence in retry.reminder, with {{letters}}"
        )
    if not choices:
        return fill(sentence)
    *first, last = letters_for(choices)
    return fill(sentence, letters=f"{', '.join(first)} {_OR.get(known, '/')} {last}")
