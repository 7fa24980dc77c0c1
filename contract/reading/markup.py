"""What is around the words of a completion: reasoning, turns, Markdown, LaTeX, HTML, and characters that nobody sees.

Everything here is linear in the length of the text, whatever it consists of.
"""

import re
import unicodedata

DECLARES = "answer"
"""The word that stands for markup that declares (`\\boxed{B}`, `<answer>B</answer>`), whatever the language."""

_INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u180b-\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\u20e3\ufe00-\ufe0f\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e0fff]"
)
_STRUCK = re.compile("[^\\s][\u0335-\u0338]")
# Putting long piles of marks into their canonical order takes the square of their number.
_PILED = re.compile(r"([^\w\s\x00-\x7f]{32})[^\w\s\x00-\x7f]+")
_SQUARED = {start + place: 65 + place for start in (0x1F150, 0x1F170) for place in range(26)}
_PLAIN: dict[int, int | str] = {
    **_SQUARED,
    **dict.fromkeys(map(ord, "’‘ʼ‛′´‹›"), "'"),
    **dict.fromkeys(map(ord, "“”„‟«»〝〞″"), '"'),
    **dict.fromkeys(map(ord, "【〔「『⟦"), "["),
    **dict.fromkeys(map(ord, "】〕」』⟧"), "]"),
    **dict.fromkeys(map(ord, "‐‑−"), "-"),
    **dict.fromkeys(map(ord, "–—―"), " - "),
    **dict.fromkeys(map(ord, "✅✔☑"), "✓"),
    **dict.fromkeys(map(ord, "❌✘✖❎☒"), "✗"),
}
_ENTITIES = (("&lt;", "<"), ("&gt;", ">"), ("&quot;", '"'), ("&#39;", "'"), ("&nbsp;", " "), ("&amp;", "&"))

_REASONING = r"think|thinking|thoughts?|reasoning|reflection|analysis|scratchpad|ragionamento|pensiero"
_REASONING_TAG = re.compile(
    rf"[<\[◁](?P<end>/?)(?:\w{{1,20}}:)?(?:{_REASONING})(?:\s[^<>\[\]]{{0,200}}?)?(?P<empty>/?)[>\]▷]"
    r"|<\|(?:START_THINKING|begin_of_thought)\|>|<\|channel>\s*(?:thought|analysis)"
    r"|(?P<closed><\|(?:END_THINKING|end_of_thought)\|>|<channel\|>)",
    re.IGNORECASE,
)
_CHANNEL = re.compile(r"<\|channel\|>\s*(?P<name>\w*)[^<]{0,100}<\|message\|>")
_CHANNEL_END = re.compile(r"<\|(?:end|return|start|call|channel)\|>")
# The same markers as servers leave them that drop special tokens.
_BARE_CHANNEL = re.compile(r"\s*(?:analysis|commentary)(?=[A-Z\"'(*])")
_BARE_FINAL = "assistantfinal"

_TURN_END = re.compile(
    r"<\|(?:im_end|eot_id|eom_id|end|return|endoftext|end_of_text|END_OF_TURN_TOKEN|end▁of▁sentence)\|>"
    r"|</s>|<end_of_turn>|<eos>"
)
_TURN_HEAD = re.compile(
    r"<\|(?:start_header_id|im_start|start)\|>\s*(?:assistant|model)?\s*(?:<\|(?:end_header_id|message)\|>)?"
    r"|<start_of_turn>(?:model)?|<\|[^|>]{1,60}\|>|<s>"
)

_LATEX_FONT = re.compile(
    r"\\(?:text|textbf|textit|textrm|textsf|texttt|emph|mathrm|mathbf|mathit|mathsf|mathtt|boldsymbol|bm|operatorname)"
    r"\s*\{([^{}]*)\}"
)
_ROW_RULE = re.compile(r"^(?=[^\n|]*\|)[|:+ -]+$", re.MULTILINE)
_CELLS = re.compile(r"^ *\|[^\n]*$", re.MULTILINE)
_UNCHECKED = re.compile(r"^ *(?:[-*+] )? *\[ \][^\n]*$", re.MULTILINE)
_CHECKED = re.compile(r"^ *(?:[-*+] )? *\[[xX]\]", re.MULTILINE)
_SUBSTITUTIONS = (
    (re.compile(r"^(?:```|~~~)[\w+-]*[^\S\n]*$", re.MULTILINE), ""),
    (re.compile(r"~~[^~\n]{1,200}~~"), ""),
    (re.compile(r"(?i)<(?:final_?)?(?:answer|risposta|choice|scelta)>"), f"\n{DECLARES}: "),
    (re.compile(r"(?i)</(?:final_?)?(?:answer|risposta|choice|scelta)>"), "\n"),
    (re.compile(r"</?(?:p|(?i:br|div|li|ul|ol|tr|h[1-6]))(?:\s[^<>]{0,200})?/?>"), "\n"),
    (re.compile(r"</?(?:b|i|u|(?i:strong|em|span|code|mark|font|sup|sub))(?:\s[^<>]{0,200})?>"), ""),
    (re.compile(r"\\(?:boxed|fbox)\s*\{([^{}]*)\}"), rf" {DECLARES}: \1 "),
    (re.compile(r"\\(?:bf|rm|it|left|right|quad|qquad)\b|\\[,;:! ]"), " "),
    (re.compile(r"[*`$]+|\\[()\[\]]"), ""),
    (re.compile(r"(?<!_)_+"), lambda run: run[0] if _inside_a_word(run) else ""),
    (re.compile(r"[^\S\n]+"), " "),
    (re.compile(r"\s*\n\s*"), "\n"),
    (re.compile(r"^[#>]+ ?", re.MULTILINE), ""),
    (re.compile(r"^([✓✗]) ?([^\n]+)$", re.MULTILINE), r"\2 \1"),
)


def normal(text: str) -> str:
    """`text` in NFKC without invisible and struck characters, with one kind of quotes, brackets and dashes.

    Full-width and boxed letters become plain ones; letters of other alphabets stay what they are.
    """
    for entity, character in _ENTITIES:
        text = text.replace(entity, character)
    if text.isascii():
        return text
    text = _STRUCK.sub("", _PILED.sub(r"\1", _INVISIBLE.sub("", text)))
    return unicodedata.normalize("NFKC", text.translate(_PLAIN)).translate(_PLAIN)


def after_reasoning(text: str) -> str | None:
    """What stands outside the reasoning of a `normal` text; None when reasoning begins and does not end.

    An end without a beginning closes what stood before it: the beginning may have been part of the prompt. A second
    beginning adds none, because templates often write the first one themselves.
    """
    told = _final_channel(text)
    if told is None:
        return None
    kept: list[str] = []
    start, inside = 0, False
    for tag in _REASONING_TAG.finditer(told):
        if tag["end"] or tag["closed"]:
            kept, inside = (kept if inside else []), False
        elif not inside:
            kept.append(told[start : tag.start()])
            inside = not tag["empty"]
        start = tag.end()
    return None if inside else "".join([*kept, told[start:]])


def _final_channel(text: str) -> str | None:
    """What was said on the final channel, None if only others were used; the text itself where there are none."""
    heads = list(_CHANNEL.finditer(text))
    if heads:
        final = [head.end() for head in heads if head["name"] == "final"]
        return _CHANNEL_END.split(text[final[-1] :], maxsplit=1)[0] if final else None
    if (bare := _BARE_CHANNEL.match(text)) is not None:
        _, found, said = text[bare.end() :].rpartition(_BARE_FINAL)
        return said if found else None
    return text


def clean(text: str) -> str:
    """The first turn of a `normal` text without markup, with single spaces and no blank lines."""
    text = next((turn for turn in map(_without_heads, _TURN_END.split(text)) if turn), "")
    if _CHECKED.search(text) and _UNCHECKED.search(text):  # "[X]" alone is a letter
        text = _CHECKED.sub("", _UNCHECKED.sub("", text))
    text = _CELLS.sub(lambda row: " - ".join(row[0].strip().strip("|").split("|")), _ROW_RULE.sub("", text))
    for _ in range(3):  # as deep as they are nested in practice
        text = _LATEX_FONT.sub(r"\1", text)
    for pattern, replacement in _SUBSTITUTIONS:
        text = pattern.sub(replacement, text)
    return text.strip()


def _without_heads(turn: str) -> str:
    return _TURN_HEAD.sub("", turn).strip()


def _inside_a_word(run: re.Match[str]) -> bool:
    """Whether underscores join two halves of a word, as in a name; elsewhere they are emphasis."""
    before, after = run.string[run.start() - 1 : run.start()], run.string[run.end() : run.end() + 1]
    return before.isalnum() and after.isalnum()
