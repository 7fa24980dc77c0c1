"""The datasets of the positional-bias paper, each in the layout of its authors."""

import bz2
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from contract.errors import InputError
from contract.items import Item
from contract.study import Dataset
from producer.datasets import load_dataset
from producer.datasets.layouts import read_rows

FOLDER = os.environ.get("BOTHWAYS_SHARED_DATA")
with_real_data = pytest.mark.skipif(not FOLDER, reason="BOTHWAYS_SHARED_DATA names no folder with WebGPT and others")
REAL = Path(FOLDER or ".")

SQUAD = {
    "id": "5725",
    "context": "Il mulino fu costruito da Ada.",
    "question": "Chi costruì il mulino?",
    "correct_answer": "Ada",
    "wrong_answer": "Bruno",
}
ALL_WRONG = {
    "id": "5725",
    "context": "Il mulino.",
    "question": "Chi?",
    "wrong_answer": "un tram",
    "second_wrong_answer": "blu",
}


def comparison(**changes: Any) -> dict[str, Any]:  # noqa: ANN401
    """A row of WebGPT comparisons, with the fields that a loader has no use for."""
    row = {
        "question": {"dataset": "eli5", "id": "q1", "full_text": "Why is the sky blue?"},
        "quotes_0": {"title": ["Sky"], "extract": ["Blue light ..."]},
        "answer_0": "Because of scattering.",
        "tokens_0": {"prefix": [1], "completion": [2]},
        "score_0": 0.5,
        "quotes_1": {"title": [], "extract": []},
        "answer_1": "It mirrors the sea.",
        "tokens_1": {"prefix": [1], "completion": [2]},
        "score_1": -0.5,
    }
    return row | changes


def pair(**changes: Any) -> dict[str, Any]:  # noqa: ANN401
    """A line of the pair task: a post and two threads, of which the first changed its author's opinion."""
    line = {
        "op_name": "t3_abc",
        "op_author": "someone",
        "op_title": "CMV: tea is better than coffee",
        "op_text": "It just is.",
        "positive": {"ancestor": "t1_p", "author": "p", "comments": [{"body": "Try both."}, {"body": "And again."}]},
        "negative": {"ancestor": "t1_n", "author": "n", "comments": [{"body": "No."}]},
    }
    return line | changes


def load(path: Path, rows: Sequence[object], **fields: Any) -> list[Item]:  # noqa: ANN401
    """The items of a file with these rows."""
    text = "".join(json.dumps(row) + "\n" for row in rows)
    path.write_bytes(bz2.compress(text.encode()) if path.suffix == ".bz2" else text.encode())
    return load_dataset(Dataset(name="d", path=str(path), prompt="two-choice-low", **fields), path)


def test_low_and_medium_uncertainty_ask_the_same_choices_with_and_without_the_context(tmp_path: Path) -> None:
    (low,) = load(tmp_path / "a.jsonl", [SQUAD], loader="squad_it_2", setting="low")
    (medium,) = load(tmp_path / "a.jsonl", [SQUAD], loader="squad_it_2", setting="medium")

    assert (low.choices, low.target, low.context) == (("Ada", "Bruno"), 0, SQUAD["context"])
    assert (medium.choices, medium.target, medium.context) == (("Ada", "Bruno"), 0, None)
    assert (low.language, low.cluster) == ("it", medium.cluster)


def test_under_high_uncertainty_no_choice_is_right(tmp_path: Path) -> None:
    (high,) = load(tmp_path / "a.jsonl", [ALL_WRONG], loader="squad_it_2", setting="high")

    assert (high.choices, high.target, high.context) == (("un tram", "blu"), None, None)


def test_a_right_answer_without_words_is_shown_as_it_stands_and_is_no_target(tmp_path: Path) -> None:
    (item,) = load(tmp_path / "a.jsonl", [SQUAD | {"correct_answer": " "}], loader="squad_it_2", setting="low")

    assert (item.choices, item.target) == (("", "Bruno"), None)


@pytest.mark.parametrize(
    ("setting", "row", "field"),
    [("low", ALL_WRONG, "correct_answer"), ("high", SQUAD, "second_wrong_answer"), ("low", {"id": "1"}, "context")],
)
def test_a_file_of_another_version_of_squad_it_2_is_refused_by_its_missing_field(
    tmp_path: Path, setting: str, row: dict[str, str], field: str
) -> None:
    with pytest.raises(InputError, match=f"row 1: {field}: is missing"):
        load(tmp_path / "a.jsonl", [row], loader="squad_it_2", setting=setting)


def test_the_preferred_answer_stands_first_wherever_the_file_has_it(tmp_path: Path) -> None:
    swapped = comparison(score_0=-1, score_1=1)

    items = load(tmp_path / "w.jsonl", [comparison(), swapped], loader="webgpt")

    assert [item.choices[0] for item in items] == ["Because of scattering.", "It mirrors the sea."]
    assert {item.target for item in items} == {0}
    assert items[0].question == "Why is the sky blue?"
    assert items[0].cluster == items[1].cluster


def test_an_empty_answer_was_compared_too_and_is_shown_as_it_stands(tmp_path: Path) -> None:
    (item,) = load(tmp_path / "w.jsonl", [comparison(answer_1="")], loader="webgpt")

    assert item.choices == ("Because of scattering.", "")


def test_a_comparison_without_a_preference_is_no_item(tmp_path: Path) -> None:
    items = load(tmp_path / "w.jsonl", [comparison(score_0=0, score_1=0), comparison()], loader="webgpt")

    assert [item.source_id for item in items] == ["row-2"]


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (comparison(score_0="0.5"), "row 1: score_0: must be a number"),
        (comparison(question={"id": "q"}), r"row 1: question\.full_text: is missing"),
        (comparison(question="Why?"), "row 1: question: must be a JSON object with full_text"),
        (comparison(answer_1=None), "row 1: answer_1: is empty"),
        (comparison(answer_1="Because of scattering."), "row 1: choices: the choices are equal"),
    ],
)
def test_a_comparison_that_cannot_be_asked_is_named_by_row_and_field(
    tmp_path: Path, row: dict[str, Any], said: str
) -> None:
    with pytest.raises(InputError, match=said):
        load(tmp_path / "w.jsonl", [row], loader="webgpt")


def test_comparisons_are_read_from_parquet_as_the_hub_has_them(tmp_path: Path) -> None:
    rows = [comparison(), comparison(score_0=-1, score_1=1), comparison(score_0=0, score_1=0)]
    path = tmp_path / "0000.parquet"
    pl.DataFrame(rows).write_parquet(path)

    items = load_dataset(Dataset(name="d", path=str(path), prompt="more-useful", loader="webgpt"), path)

    assert items == load(tmp_path / "w.jsonl", rows, loader="webgpt")
    assert len(items) == 2


def test_a_comparison_in_parquet_that_cannot_be_asked_is_named_by_row_and_field(tmp_path: Path) -> None:
    path = tmp_path / "0000.parquet"
    pl.DataFrame([comparison(), comparison(score_0=None)]).write_parquet(path)

    with pytest.raises(InputError, match="row 2: score_0: must be a number"):
        load_dataset(Dataset(name="d", path=str(path), prompt="more-useful", loader="webgpt"), path)


def test_a_message_is_the_first_comment_of_its_thread(tmp_path: Path) -> None:
    items = load(tmp_path / "heldout.jsonlist.bz2", [pair(), pair()], loader="winning_arguments")

    assert [item.choices for item in items] == [("Try both.", "No.")] * 2
    assert [item.source_id for item in items] == ["t3_abc-1", "t3_abc-2"]
    assert {(item.target, item.cluster, item.question) for item in items} == {
        (0, "t3_abc", "CMV: tea is better than coffee")
    }


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (pair(negative={"comments": []}), r"row 1: negative\.comments: has no comment"),
        (pair(positive={}), r"row 1: positive\.comments: is missing"),
        (pair(positive={"comments": [{}]}), r"row 1: positive\.comments\[0\]\.body: is missing"),
    ],
)
def test_a_pair_without_its_messages_is_named_by_line_and_field(
    tmp_path: Path, line: dict[str, Any], said: str
) -> None:
    with pytest.raises(InputError, match=said):
        load(tmp_path / "pairs.jsonlist", [line], loader="winning_arguments")


def corpus(folder: Path, *utterances: dict[str, Any], **conversations: Any) -> list[Item]:  # noqa: ANN401
    """The items of a ConvoKit corpus with one held-out post, `t3_a`, and one of the training part, `t3_b`."""
    known = {"t3_a": {"op-title": "CMV: tea", "train": 0}, "t3_b": {"op-title": "CMV: coffee", "train": 1}}
    (folder / "conversations.json").write_text(json.dumps(known | conversations), encoding="utf-8")
    return load(folder / "utterances.jsonl", utterances, loader="winning_arguments")


def utterance(text: str, success: int | None, *pairs: str, post: str = "t3_a", to: str | None = None) -> dict[str, Any]:
    """An utterance as ConvoKit writes it; a reply to the post unless `to` says otherwise."""
    meta = {"score": 3, "pair_ids": list(pairs), "success": success}
    return {"id": text, "conversation_id": post, "speaker": "s", "reply-to": to or post, "text": text, "meta": meta}


def test_a_corpus_of_convokit_gives_its_held_out_pairs(tmp_path: Path) -> None:
    items = corpus(
        tmp_path,
        utterance("lost", 0, "p_1"),
        utterance("deeper in the thread", 1, "p_1", to="won"),
        utterance("won", 1, "p_1", "p_2"),
        utterance("lost too", 0, "p_2"),
        utterance("nobody's", None),
        utterance("trained on", 1, "p_9", post="t3_b"),
    )

    assert [(item.source_id, item.choices) for item in items] == [
        ("p_1", ("won", "lost")),
        ("p_2", ("won", "lost too")),
    ]
    assert {(item.question, item.cluster, item.target) for item in items} == {("CMV: tea", "t3_a", 0)}


def test_older_and_newer_corpora_of_convokit_name_things_otherwise(tmp_path: Path) -> None:
    rows = [utterance("won", 1, "p_1", post="t3_c"), utterance("lost", 0, "p_1", post="t3_c")]
    older = [
        {"root": row["conversation_id"], "reply_to": row["reply-to"], "text": row["text"], "meta": row["meta"]}
        for row in rows
    ]

    for written in (rows, older):
        (item,) = corpus(tmp_path, *written, t3_c={"meta": {"op-title": "CMV: water", "train": 0}, "vectors": []})
        assert (item.choices, item.question) == (("won", "lost"), "CMV: water")


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([utterance("won", 1, "p_1")], "pair p_1 has no message that was not persuasive that replies to its post t3_a"),
        ([utterance("lost", 0, "p_1")], "pair p_1 has no persuasive message that replies to its post t3_a"),
        ([{"conversation_id": "t3_a", "reply-to": "t3_a"}], "row 1: meta: is missing"),
    ],
)
def test_a_corpus_that_is_not_whole_is_named_by_what_it_lacks(
    tmp_path: Path, rows: list[dict[str, Any]], said: str
) -> None:
    with pytest.raises(InputError, match=said):
        corpus(tmp_path, *rows)


@pytest.mark.parametrize("ending", [".bz2", ".gz"])
def test_a_packed_file_that_is_not_whole_says_so(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"pairs.jsonlist{ending}"
    path.write_bytes(b"BZh91AY&SY" if ending == ".bz2" else b"\x1f\x8b\x08")

    with pytest.raises(InputError, match=f"not a whole .* file, though its name ends in {ending}"):
        load_dataset(Dataset(name="d", path=str(path), prompt="more-persuasive", loader="winning_arguments"), path)


@with_real_data
def test_the_real_comparisons_come_out_preferred_answer_first_from_the_authors_layout(tmp_path: Path) -> None:
    sample = list(read_rows(REAL / "webgpt/webgpt_comparisons_sample134.jsonl.gz"))
    rows = [
        comparison(
            question={"dataset": "eli5", "id": row.text("id"), "full_text": row.text("question")},
            **{
                f"answer_{row.number % 2}": row.text("answer_preferred"),
                f"score_{row.number % 2}": row.values["score_preferred"],
                f"answer_{1 - row.number % 2}": row.values["answer_other"],
                f"score_{1 - row.number % 2}": row.values["score_other"],
            },
        )
        for row in sample
    ]

    items = load(tmp_path / "w.jsonl", rows, loader="webgpt")

    assert [item.choices for item in items] == [
        (row.text("answer_preferred"), row.values["answer_other"]) for row in sample
    ]
    assert len({item.cluster for item in items}) == len(items) == 134


@with_real_data
def test_the_real_pairs_come_out_persuasive_message_first_from_the_authors_layout(tmp_path: Path) -> None:
    sample = list(read_rows(REAL / "winning_arguments/heldout_pairs_500.jsonl.gz"))
    lines = [
        pair(
            op_name=row.text("op_text")[:40],
            positive={"comments": [{"body": row.text("message_persuasive")}]},
            negative={"comments": [{"body": row.text("message_other")}]},
        )
        for row in sample
    ]

    items = load(tmp_path / "heldout.jsonlist.bz2", lines, loader="winning_arguments")

    assert len(items) == 500
    assert [item.choices for item in items] == [
        (row.text("message_persuasive"), row.text("message_other")) for row in sample
    ]
