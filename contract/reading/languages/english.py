"""English."""

from contract.reading.languages.language import Language

ENGLISH = Language(
    code="en",
    capitals="I",
    articles="the",
    labels="option|message|alternative|choice|letter|response|statement|argument|candidate",
    numbers=r"number|no\.?",
    replies="answer|ans\\.?",
    nouns="final[ _]?answer|solution|output|result|conclusion|pick|selection|verdict|decision|winner|assistant",
    others="other|another|first|second|third|fourth|last|next|each|every|rejected|alternative",
    is_="is|seems|appears",
    are="are|was|were|seem|appear|must be",
    to_be="should be|will be|has to be|seems to be|appears to be|remains|comes out as",
    would_be="would be|would have to be",
    right=(
        "correct|right|true|best|better|persuasive|convincing|plausible|likely|useful|helpful|accurate|appropriate|"
        "suitable|closest|closer|preferable|stronger|strongest|superior"
    ),
    wrong="wrong|incorrect|false|out|mistaken|excluded|rejected|discarded|eliminated|ruled out|untrue",
    affirms="wins|makes (?:more|the most) sense|fits (?:better|best)",
    not_=r"not|never|no|\w+n't|cannot|nor|least|less|worse|worst|unlikely|hardly|far from",
    denies="(?:is|are|ca|could|wo|would)n't|cannot|(?:doesn't|does not) (?:fit|work|match|make)|makes no sense",
    doubts=(
        r"not|never|\w+n't|cannot|(?<!no )(?<!without a )doubt|might|may|could|unsure whether|hardly|used to|"
        r"was going to|were going to|tempted to|some(?:one|body| people)?|others|nobody|no one|few|suppose|supposing|"
        r"(?<!i )assume|assuming|let's say|why"
    ),
    that="that",
    assured=(
        "think|believe|say|clear|sure|certain|true|obvious|evident|apparent|likely|means|shows|suggests|indicates|states|"
        "confirms|implies|conclude|infer|find|feel|know|see|(?<=no )doubt|(?<=without )doubt|(?<=a )doubt|"
        "fact is|truth is|point is|confident|convinced"
    ),
    concedes="although|though|even if|despite|admittedly",
    chooses=(
        "choose|select|pick|i (?:chose|picked|selected)|i(?:'ve| have) (?:chosen|picked|selected)|go with|going with|"
        "opt for|vote for|prefer|say|think|believe|guess|"
        "lean towards?|leaning towards?|settle on|stick with|meant"
    ),
    between=(
        "probably|most likely|likely|definitely|clearly|therefore|thus|indeed|actually|simply|that|it is|it's|the|"
        "always|still|instead|obviously|certainly|surely|of course"
    ),
    therefore=(
        "therefore|thus|hence|so|but|however|instead|rather|it must be|it has to be|it is|it's|actually|correction|"
        "probably|definitely|certainly|clearly|obviously|most likely|"
        "in my (?:opinion|view)|according to the (?:text|passage|context)"
    ),
    apart="anything|nothing|everything|all|none|no one|not so",
    asides="yes|no|sure|okay|ok|sorry|final answer",
    because="because|since|due to",
    after=(
        "and|but|not|rather|instead|over|so|then|given|for|as|based|which|with|in|on|from|among|between|"
        "according|or|option|answer|choice|when|where|here|than|to be"
    ),
    before=(
        "that|and|but|so|because|since|as|while|then|thus|therefore|answer|the|instead|think|believe|say|is that|"
        "clearly|obviously|only|just"
    ),
    against="not|than|over|of|nor|from",
    both="both|either",
    neither="neither|none",
    of_them="of|the|them|these|two|answers?|options?|choices?|messages?|both|above",
    joints="and|or|and/or|as well as|versus|vs|vs\\.",
    maybe="maybe|perhaps|possibly",
    nor="nor",
    also="also|too|equally|as well",
    if_="if|unless|whether|provided|assuming|in case",
    forced="[iI]|we|i'm|forced|asked|pressed|anything",
    yes="yes",
    no="no|not",
    refusals=(
        "can(?:not|'?t| not)|could(?: not|n't)|unable to|not able to|won't|refuse to|decline to|i'?m sorry|"
        "i apologi[sz]e|as an ai|i (?:do not|don't) (?:know|have)|not enough (?:information|context)|insufficient|"
        "not (?:sure|certain)|unsure|no way (?:to|of)|impossible|rather not (?:say|answer|choose)|"
        "(?:do not|don't) feel comfortable|no opinion|no preference|would need more|not comfortable"
    ),
    untold=(
        "(?:(?:it is|it's|this is) )?not (?:specified|mentioned|stated)|(?:it is|it's) not (?:known|given|clear)|"
        "the (?:text|context|passage) does(?: not|n't)|there is no (?:answer|information)|no (?:answer|information)"
    ),
    leading="the|a|an|in|on|at|of|to|by|for|from|with|about",
    headings="question|context|instructions?|user|human",
)
