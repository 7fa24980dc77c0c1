"""What a language contributes to the reading "strict": its words, and nothing about how they are used."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Language:
    """The words by which completions in one language declare, deny and excuse.

    Every field but `code` holds alternatives of a regular expression, parted by `|`: lower case (case is ignored where
    they are used, but for words of one letter), straight apostrophes, single blanks, groups only as `(?:...)`. An
    empty field contributes nothing. The words of all known languages are tried together, because models answer in other
    languages than they were asked in; so a word that means something else in another language belongs in
    `therefore_at_home` or nowhere.
    """

    code: str
    """The language of items that this serves, as they name it: "it" also serves "it-CH"."""

    capitals: str = ""
    """Words that are one capital letter wherever they stand: I. Bare, they are labels only where no word follows."""

    articles: str = ""
    """What may stand before a label: the."""
    labels: str = ""
    """What a label or number may be called: option B, message 2."""
    numbers: str = ""
    """What may stand between such a name and its number: message no. 2."""
    replies: str = ""
    """What the answer itself is called; also the key of a JSON field."""
    nouns: str = ""
    """Further words that a declaration may begin with: solution, result."""
    others: str = ""
    """What makes such a word speak of something else: the other option, the first choice."""

    is_: str = ""
    """What joins a label to what is said about it: is, seems."""
    are: str = ""
    """The same where it does not speak of one alone: are, was."""
    to_be: str = ""
    """Its longer forms, which only join a noun to a label: has to be."""
    would_be: str = ""
    """The same in the conditional: it declares nothing after a condition."""
    right: str = ""
    """What makes a label the answer: correct, better."""
    wrong: str = ""
    """What rules a label out: wrong, excluded."""
    affirms: str = ""
    """Verbs that make a label the answer by themselves: wins."""
    not_: str = ""
    """What turns the words after it around: not, less."""
    denies: str = ""
    """What denies the label before it by itself: cannot."""
    doubts: str = ""
    """What takes the weight from a declaration that follows within four words: I do not think, one might say."""

    that: str = ""
    """What begins a clause that somebody may hold true or not: that the answer is B."""
    assured: str = ""
    """What has to stand before it, at most two words away, for the clause to declare: I think, it is clear."""
    concedes: str = ""
    """What begins a clause whose verdict is not the last word: although B is better written."""

    chooses: str = ""
    """What chooses the label that follows: I choose."""
    between: str = ""
    """What may stand between such words and the label: probably, that it is."""
    therefore: str = ""
    """What makes a label that ends the sentence the answer: therefore B, but B."""
    therefore_at_home: str = ""
    """The same, for items in this language only."""
    apart: str = ""
    """What turns that around: anything but B."""
    asides: str = ""
    """Interjections before a label that ends the sentence: yes, B."""
    because: str = ""
    """What begins a reason after a label."""
    after: str = ""
    """What else shows that a bare letter before it was a label and no word: and, but, over."""
    before: str = ""
    """What may stand before a bare letter of which something is said: and A is correct."""
    against: str = ""
    """What sets a label apart from the one chosen: not B, than B. One word each."""

    both: str = ""
    """What names several labels at once."""
    neither: str = ""
    """What names no label."""
    of_them: str = ""
    """What may follow these: of the answers."""
    joints: str = ""
    """What joins two labels: A and B."""
    maybe: str = ""
    """What adds a second label to a first: A or possibly B."""
    nor: str = ""
    """What joins two labels that are both denied."""
    also: str = ""
    """What makes a verdict on a label hold beside another one: B is also correct."""

    if_: str = ""
    """What begins a condition."""
    forced: str = ""
    """What follows it where the condition is only that somebody has to answer: if I had to choose."""
    yes: str = ""
    """The verdict after a label in a list, beside `right`."""
    no: str = ""
    """The verdict after a label in a list, beside `wrong`."""
    refusals: str = ""
    """What declines to answer."""
    headings: str = ""
    """How the parts of a prompt begin, before a colon: question, context."""
