"""A study to begin with: a commented study file and three items that run as they are."""

from pathlib import Path

from contract.errors import UsageError

_STUDY = """\
# A study: which questions are asked of which models, and how. It runs as it is, with the model that comes along.
study: my-study               # its name; results are kept under it, so a copy of this file needs another one
description: Three questions   # for people; may be left out

datasets:                     # one entry or several; each is a row of the tables
  - name: harbour             # the dataset's name in the tables
    loader: items             # one row an item; also: uncertainty, squad_it, squad_it_2, webgpt, winning_arguments,
                              # bbq, opinion_qa, global_opinion_qa
    path: items.jsonl         # beside this file; .jsonl, .csv, .tsv (these also .gz) or .parquet; ${NAME} is a variable
    prompt: two-choice-low    # two-choice-medium leaves the context out; or a .txt of yours with {question}, {choices}
    language: en              # of items that name none; the prompts that come along are in en and it
    # columns:                # only if your file has other names for id, question, choices, target, context, ...
    #   id: question_id       # every item has its own
    #   choices: [first, second]   # two columns, as in a CSV; or one that holds a list
    #   target: right         # the index of the right choice, from 0; empty or null if none is right
    #   cluster: chapter      # items that share it are not independent; without it, those that share a context
    # expect: {items: 3}      # refuse the file if it holds another number

models:                       # each is asked everything
  - name: SmolLM2-135M        # the model's name in the tables
    provider: openai          # any OpenAI-compatible server; simulated for a model with known habits
    model: smollm2-135m-instruct   # the name that the server knows it by
    # base_url: http://127.0.0.1:8000/v1   # your own server; without it the embedded one
    # api_key_env: MY_KEY     # the name of the variable that holds the key where the worker runs, never the key
    timeout_s: 60             # a call that takes longer is tried again

formats:                      # how the model must answer
  - format: closed            # one letter
    orders: both              # every item is asked in both orders
    sampling: {temperature: 0.7, max_tokens: 8, seed: 1}   # top_p as well, if you want it

repeats: 1                    # ask everything this often
# limit: 100                  # only the first items of each dataset, to try it
# weight: 2                   # its share of a model beside other studies; 1 if left out
retry:                        # may be left out, as bundles may
  invalid: 1                  # ask again this often where no answer could be read; figures are for first and final
  strategy: resample          # with a new seed; remind: with a sentence more; constrain: limited to the letters
bundles: {size: 8, budget_s: 20}   # how many calls a worker takes at once, and for how many seconds at most
"""

_ITEMS = """\
{"id": "q1", "context": "The ferry to Marrow Island leaves at nine. The last one back leaves the island at six.", \
"question": "When does the last ferry leave Marrow Island?", "choices": ["at six", "at nine"], "target": 0}
{"id": "q2", "context": "The ferry to Marrow Island leaves at nine. The last one back leaves the island at six.", \
"question": "When does the ferry to Marrow Island leave?", "choices": ["at six", "at nine"], "target": 1}
{"id": "q3", "context": "Ada mended the nets while Bruno painted the boat. Both went home before the rain.", \
"question": "Who was the first to see the rain?", "choices": ["Ada", "Bruno"], "target": null}
"""


def write_starter(folder: Path) -> tuple[Path, ...]:
    """Write study.yaml and items.jsonl into `folder`, which is made if need be; UsageError if one of them is there."""
    texts = {folder / "study.yaml": _STUDY, folder / "items.jsonl": _ITEMS}
    try:
        there = [path for path in texts if path.is_symlink() or path.exists()]
        if there:
            raise UsageError(f"{there[0]} is there already and stays as it is; name another folder")
        folder.mkdir(parents=True, exist_ok=True)
        for path, text in texts.items():
            with path.open("x", encoding="utf-8", newline="\n") as file:
                file.write(text)
    except FileExistsError as error:
        raise UsageError(f"{error.filename} is there already and stays as it is; name another folder") from None
    except OSError as error:
        raise UsageError(f"{folder} cannot be written to: {error.strerror}; name another folder") from None
    return tuple(texts)
