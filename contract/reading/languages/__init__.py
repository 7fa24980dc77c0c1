"""The languages that completions are read in. A further one is a module beside these and a place in `LANGUAGES`.

Whoever adds or changes words raises `STRICT_VERSION`: the same completion may then be read otherwise.
"""

from contract.reading.languages.english import ENGLISH
from contract.reading.languages.italian import ITALIAN
from contract.reading.languages.language import Language

__all__ = ["ENGLISH", "ITALIAN", "LANGUAGES", "Language"]

LANGUAGES: tuple[Language, ...] = (ENGLISH, ITALIAN)
