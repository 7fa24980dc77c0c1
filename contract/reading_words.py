"""The words of the reading "strict": what declares, denies, excuses; Italian and English side by side.

A letter counts in upper case only, so the words around it carry their own `(?i:...)`. Sentences are searched after
`clean` took the markup away and `fold` turned aliases ("Message 2", "(B)") into "B)" and joined letters ("A or B",
"neither A nor B") into the words "both" and "neither".
"""

import re
import unicodedata
from string import ascii_uppercase

# -- letters ----------------------------------------------------------------------------------------------------------
END = r"(?![\w'’+#&]|[-.]\w)"
LABEL = rf"(?<![\w'’&-])(?P<letter>[A-Z])(?:(?P<close>\))|{END})"
_ALIAS = r"option|opzione|message|messaggio|alternative|alternativa|choice|scelta|letter|lettera"
_REPLY = r"answer|risposta"
_ARTICLE = r"(?:\b(?i:the|la|il) |\b(?i:l)['’] ?)?"
BRACKETED = re.compile(r"[(\[{] ?([A-Z]) ?[)\]}]|[\"“«] ?([A-Z]) ?[\"”»]")
ALIAS_LETTER = re.compile(rf"{_ARTICLE}\b(?i:{_ALIAS}) ([A-Z])(?:\)|{END})")
REPLY_LETTER = re.compile(rf"{_ARTICLE}\b(?i:{_REPLY}) ([A-Z])(?:\)|(?= ?(?:[.,;:!\n]|$)))")
ALIAS_NUMBER = re.compile(rf"{_ARTICLE}\b(?i:{_ALIAS}|{_REPLY}) ([1-9])(?:\)|{END})")

# -- denying and affirming --------------------------------------------------------------------------------------------
_IS = r"is|are|was|seems|appears|would be|must be|è|e['’]|sono|sembra|sarebbe|risulta"
_DENIED = r"wrong|incorrect|false|out|sbagliat[oa]|errat[oa]|scorrett[oa]|fals[oa]|esclus[oa]|da escludere"
DENIAL = re.compile(
    rf"\b(?i:(?:{_IS})\s+(?:\w+\s+)?(?:not|{_DENIED})|(?:isn|aren|can|couldn)['’]t|cannot|"
    rf"non\s+(?:è|e['’]|può|sono|va))(?!\w)"
)
_ONE_DENIED = (
    rf"(?i:(?:is|was|è|e['’])\s+(?:\w+\s+)?(?:not|{_DENIED})|(?:isn|can|couldn)['’]t|cannot|non\s+(?:è|e['’]|può|va))\b"
)
_NOT = rf"not|non|no|never|mai|\w+n['’]t|cannot|nor|né|least|less|meno|worse|unlikely|improbabile|{_DENIED}"
_RIGHT = (
    r"correct|right|true|best|better|persuasive|convincing|plausible|likely|useful|helpful|accurate|"
    r"corrett[oaie]|giust[oaie]|esatt[oaie]|ver[oaie]|migliore|"
    r"persuasiv[oaie]|convincent[ei]|plausibil[ei]|probabil[ei]|util[ei]"
)
_AFFIRMED = (
    rf"(?i:\s+(?:{_IS})\s+(?:(?!(?:{_NOT})\b)[\w'’]+\s+){{0,3}}?(?:l['’] ?)?(?:{_RIGHT}|{_REPLY}|choice|scelta)\b)"
    r"(?!\s*\?|\s+(?i:if|se)\b)"
)
_BECAUSE = r"because|since|as|based|perch[ée]['’]?|poich[ée]['’]?|in quanto|siccome|dato che|visto che"
# Letters that are words of their own ("A causa di", "A human", "I think", "E poi"): bare, they need a safe right side.
PROSE_LETTERS = frozenset("AEIO")
SAFE_AFTER = re.compile(
    rf"\s*(?:$|[.,;:!)\]}}\"”»\n]|[-–—(]|(?i:{_BECAUSE}|is|was|è|e['’]|and|e|but|ma|not|non|rather|instead|over)(?!\w))"
)
# Where what is said about a letter ends.
CLAUSE_END = re.compile(rf"[.,;:!?\n]|(?<!\w)[A-Z](?!\w)|\b(?i:{_BECAUSE}|other|altr[oa])\b")

# -- both and neither -------------------------------------------------------------------------------------------------
_BOTH = r"both|either|entramb[ie]|tutt[ie] e due"
_NEITHER = r"neither|none|nessun[oa]"
_GROUP = rf"(?P<both>\b(?i:{_BOTH})\b)|(?P<neither>\b(?i:{_NEITHER})\b)"
_OF_THEM = r"(?:\s+(?i:of|the|them|these|two|answers?|options?|choices?|delle|dei|due|le|risposte|opzioni|scelte|both))"
_GROUP_END = rf"{_OF_THEM}{{0,4}}(?=\s*(?:[.,;:!?\"”)\n]|$|\b(?i:{_IS})\b))"
JOINED = re.compile(
    rf"\b[A-Z]\)?(?:\s?,?\s(?P<word>(?i:and|or|nor|and/or|e|ed|o|od|oppure|né|che|sia))\s|\s?(?P<sign>[/&+,])\s?)"
    rf"[A-Z](?:\)|{END})(?!\s*{_ONE_DENIED})(?(sign)(?=\s*(?:[.;:!?)\n]|$)))"
)
NEGATIVE_JOINTS = frozenset({"nor", "né"})
# "B is correct", "A) Anna è la risposta giusta", "none of the answers is right".
_OWN_TEXT = rf"(?:\s+(?:(?!\b(?i:{_NOT})\b|\b[A-Z]\))[^.,;:\n]){{1,60}}?)?"
VERDICT = re.compile(rf"(?:{LABEL}(?(close){_OWN_TEXT})|(?:{_GROUP}){_OF_THEM}{{0,4}}){_AFFIRMED}")
# A bare letter is the subject of a verdict after these only; "Plan B is better" and "if A is right" declare nothing.
BEFORE_VERDICT = re.compile(
    r"(?:^|[.,;:!?\n(]\s*|\b(?i:that|and|but|so|because|since|as|while|then|thus|therefore|answer|risposta|la|il|the|"
    r"che|e|ma|mentre|quindi|dunque|perché|poiché|instead|think|believe)\s+)$"
)
SUPPOSED = re.compile(r"\b(?i:if|whether|unless|se)\s+$")

# -- declaring --------------------------------------------------------------------------------------------------------
_NOUN = (
    rf"{_REPLY}|{_ALIAS}|final_?answer|response|solution|soluzione|output|result|risultato|conclusion|conclusione|"
    rf"pick|label|assistant|one|quell[ao]|{_RIGHT}"
)
_LINK = rf"{_IS}|should be|will be|has to be|seems to be|appears to be|dovrebbe essere|deve essere|sarà|sembra essere"
_VERB = (
    r"choose|chose|select|pick|go with|opt for|vote for|prefer|say|think|believe|guess|"
    r"scelgo|scegli|scegliere|sceglierei|seleziono|opto per|opterei per|direi|dico|rispondo|voto|preferisco|"
    r"penso|credo|ritengo"
)
_BETWEEN = (
    r"probably|most likely|likely|definitely|clearly|therefore|thus|indeed|actually|simply|"
    r"probabilmente|sicuramente|certamente|chiaramente|quindi|dunque|proprio|that|it is|it['’]s|che sia|sia|la|il|the"
)
_GLUE = rf"\s*(?:(?i:{_BETWEEN})[,:]?\s+){{0,3}}[\"“«'(\[]*\s*"
_FILLER = rf"(?:\s+(?!(?i:{_NOT}|if|se)\b|[A-Z]\b)[\w'’]+){{0,6}}?"
_NO_NOUN = rf"\b(?i:(?:{_DENIED}|not)\s+|(?:if|whether|se|unless)\s+(?:the\s+|la\s+|l['’])?(?:\w+\s+)?)"
_NO_VERB = (
    r"(?:\b(?i:not|cannot|non|never|mai)|n['’]t|\b(?i:if|when|se|quando)\s+(?i:you|one|we|they|si))\s+(?:\w+\s+)?"
)
# "The correct answer to the question is A", "Risposta: B", "Scelgo la B"; what stands behind a hedge does not count.
DECLARATION = re.compile(
    rf"(?P<hedge>{_NO_NOUN}(?=(?i:{_NOUN})\b)|{_NO_VERB}(?=(?i:{_VERB})\b))?"
    rf"(?:\b(?i:{_NOUN})[\"”'’]?(?:{_FILLER}\s*(?:[:=→]|->|\s(?i:{_LINK})(?![\w'’])))|\b(?i:{_VERB})\b[,:]?)"
    rf"{_GLUE}(?:{LABEL}|(?:{_GROUP}){_GROUP_END})"
)
# "quindi B", "ma B": so short that the letter has to end the sentence.
_SHORT = (
    r"quindi|dunque|perciò|pertanto|therefore|thus|hence|so|ma|but|bensì|anzi|instead|rather|it is|it['’]s|sarebbe|"
    r"(?:yes|no|sure|sì|certo|okay|ok)(?=[,.!:])"
)
SHORT_DECLARATION = re.compile(
    rf"\b(?i:{_SHORT})\b[,.!:]?(?:\s+(?i:{_IS}|it is|it['’]s))?{_GLUE}{LABEL}(?=\s*(?:[.!;\n]|$))"
)

# -- lines and wholes -------------------------------------------------------------------------------------------------
WHOLE = re.compile(rf"[^\w?]*(?i:(?:the|la|il) )?(?i:(?:{_ALIAS}|{_REPLY}) )?\(?(?P<letter>[A-Za-z])[^\w?/+&#]*")
LABELLED = re.compile(r"[(\[]?(?P<letter>[A-Za-z]) ?[)\].:-]\s*(?P<text>.+)", re.DOTALL)
LEAD = re.compile(
    rf"\s*(?:[•*-]\s+)?(?P<letter>[A-Z])"
    rf"(?:\)[.:]?|[.:](?!\S)|\s+[-–—](?!\S)|\s*$|(?=,?\s+(?i:{_BECAUSE}|and not|e non|not|non)\b))"
)
JSON_VALUE = re.compile(rf"[\"'](?i:{_REPLY}|{_ALIAS}|final_?answer|label)[\"']\s*:\s*(?:\"([^\"]*)\"|'([^']*)')")
# "A) Blue B) Red" on one line, unless the second label is only spoken of.
INLINE_LIST = re.compile(
    r"(?:^|: )(?P<letter>[A-Z])\) ?[^\n]{0,200}?(?<!\bnot )(?<!\bnon )(?<!\bthan )(?<!\bdi )(?=(?!(?P=letter))[A-Z]\))",
    re.MULTILINE,
)
# A small model that goes on with a next question: what follows is not about this one.
NEXT_QUESTION = re.compile(r"\n(?i:question|domanda|context|contesto) ?:")

# -- saying why not ---------------------------------------------------------------------------------------------------
SAYS_NEITHER = re.compile(rf"\b(?i:{_NEITHER})\b")
SAYS_BOTH = re.compile(rf"\b(?i:{_BOTH})\b")
SAYS_NO = re.compile(
    r"\b(?i:can(?:not|['’]?t| not)|could(?: not|n['’]t)|unable to|not able to|won['’]t|refuse to|decline to|"
    r"i['’]?m sorry|i apologi[sz]e|as an ai|i (?:do not|don['’]t) know|not enough information|insufficient|"
    r"non (?:posso|potrei|riesco|sono in grado|è possibile|so|lo so|saprei|ho abbastanza|ci sono abbastanza)|"
    r"mi dispiace|mi scuso|impossibile|preferisco non|non dispongo|come (?:modello|intelligenza))\b"
)

# -- folding -----------------------------------------------------------------------------------------------------------
_REASONING_TAG = re.compile(r"[<\[](?P<end>/?)(?:think|thinking|thought|reasoning|reflection)[>\]]", re.IGNORECASE)
_MARKUP = (
    (re.compile(r"<\|[^|>]*\|>|</?s>|<(?:end|start)_of_turn>"), ""),  # control tokens that a server let through
    (re.compile(r"(?i)<(?:answer|risposta)>"), "\nAnswer: "),
    (re.compile(r"(?i)</(?:answer|risposta)>"), "\n"),
    (re.compile(r"\\(?:text|textbf|mathrm|mathbf)\s*\{([^{}]*)\}"), r"\1"),
    (re.compile(r"\\boxed\s*\{([^{}]*)\}"), r" Answer: \1 "),
    (re.compile(r"[*`$]+|\\[()\[\]]|(?<!\w)_+|_+(?!\w)"), ""),
    (re.compile(r"[^\S\n]+"), " "),
    (re.compile(r"\s*\n\s*"), "\n"),
    (re.compile(r"^[#>]+ ?", re.MULTILINE), ""),
)


def after_reasoning(text: str) -> str | None:
    """What stands outside the reasoning; None when reasoning begins and does not end.

    An end without a beginning closes what stood before it: the beginning may have been part of the prompt.
    """
    kept, start, inside = "", 0, False
    for tag in _REASONING_TAG.finditer(text):
        if tag["end"]:
            kept, inside = (kept if inside else ""), False
        elif not inside:
            kept, inside = kept + text[start : tag.start()], True
        start = tag.end()
    return None if inside else kept + text[start:]


def clean(text: str) -> str:
    """`text` in NFKC without markup, with single spaces and no blank lines."""
    text = unicodedata.normalize("NFKC", text).strip()
    for pattern, replacement in _MARKUP:
        text = pattern.sub(replacement, text)
    return text.strip()


def fold(text: str) -> str:
    """Aliases of labels as "B)", and letters joined by "and", "or", "nor" as the words "both" and "neither"."""
    text = INLINE_LIST.sub(lambda match: match[0].rstrip(" ,;") + "\n", text)
    text = BRACKETED.sub(lambda match: f"{match[1] or match[2]})", text)
    text = ALIAS_LETTER.sub(r"\1)", text)
    text = REPLY_LETTER.sub(r"\1)", text)
    text = ALIAS_NUMBER.sub(lambda match: f"{ascii_uppercase[int(match[1]) - 1]})", text)
    return JOINED.sub(lambda match: "neither" if (match["word"] or "").lower() in NEGATIVE_JOINTS else "both", text)
