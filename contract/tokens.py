"""How many tokens a text is, as far as that can be told without the model's own tokenizer."""

import math

BYTES_A_TOKEN = 3.5


def estimate_tokens(text: str) -> int:
    """About how many tokens a text is; what it really was is known when its call is settled."""
    return math.ceil(len(text.encode("utf-8", "surrogatepass")) / BYTES_A_TOKEN)
