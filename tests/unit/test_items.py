"""Items: identity is content, pinned to the letter, because stored rows are found by it."""

import hashlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contract.items import Item, canonical_digest
from tests.builders import make_item

ITALIAN: dict[str, Any] = {
    "question": "È vero?",
    "choices": ("sì", "no"),
    "target": None,
    "context": "Il testo.",
    "language": "it",
}
TEXTS = st.text(min_size=1)


@pytest.mark.parametrize(
    ("item", "digest"),
    [
        pytest.param(make_item(), "7eac971bb877a9752144d54a4753a56112123940461a27040538b97a8ab4ba35", id="plain"),
        pytest.param(
            make_item(**ITALIAN), "e62840c0a83cd4de33c0f061410ae048d72ed8d4c89f1d604629886dd590d9c7", id="all fields"
        ),
    ],
)
def test_the_content_digest_never_changes(item: Item, digest: str) -> None:
    assert item.digest == digest


def test_the_content_digest_is_that_of_the_canonical_json() -> None:
    canonical = (
        '{"choices":["sì","no"],"context":"Il testo.","language":"it","question":"È vero?","target":null}'  # as stored
    )

    assert make_item(**ITALIAN).digest == hashlib.sha256(canonical.encode()).hexdigest()


def test_equal_content_under_two_ids_is_two_items_with_one_digest() -> None:
    first, second = make_item("q1", question="Which?"), make_item("q2", question="Which?")

    assert first != second
    assert first.digest == second.digest


@pytest.mark.parametrize(
    "change",
    [
        {"question": "Which is wrong?"},
        {"choices": ("the wrong one", "the right one")},
        {"target": 1},
        {"target": None},
        {"context": "A paragraph."},
        {"language": "en"},
    ],
    ids=["question", "choices swapped", "target", "no target", "context", "language"],
)
def test_whatever_a_model_or_a_figure_sees_is_in_the_digest(change: dict[str, Any]) -> None:
    assert make_item(**change).digest != make_item().digest


@pytest.mark.parametrize("change", [{"dataset": "rivers"}, {"cluster": "p7"}], ids=["dataset", "cluster"])
def test_where_an_item_belongs_is_not_in_its_digest(change: dict[str, Any]) -> None:
    assert make_item(**change).digest == make_item().digest


@given(
    st.builds(
        Item,
        dataset=TEXTS,
        source_id=TEXTS,
        question=TEXTS,
        choices=st.tuples(TEXTS, TEXTS),
        target=st.sampled_from([None, 0, 1]),
        cluster=TEXTS,
        context=st.none() | TEXTS,
        language=st.none() | TEXTS,
    )
)
def test_an_item_comes_back_from_its_row_as_it_was(item: Item) -> None:
    back = Item.from_payload(dataset=item.dataset, source_id=item.source_id, cluster=item.cluster, payload=item.payload)

    assert back == item


def test_the_canonical_digest_does_not_see_the_order_of_keys() -> None:
    assert canonical_digest({"a": 1, "b": [2, 3]}) == canonical_digest({"b": [2, 3], "a": 1})
    assert canonical_digest({"a": [2, 3]}) != canonical_digest({"a": [3, 2]})


def test_half_a_surrogate_pair_has_a_digest_of_its_own() -> None:
    assert len({canonical_digest("\ud800"), canonical_digest("\ud801"), canonical_digest("\\ud800")}) == 3


def test_a_number_that_json_does_not_know_has_no_digest() -> None:
    with pytest.raises(ValueError, match="JSON compliant"):
        canonical_digest({"temperature": float("nan")})


def test_what_no_model_sees_makes_no_other_item_and_comes_back_from_its_row() -> None:
    plain = make_item()
    known = make_item(groups=("M", "F"), traits={"polarity": "neg", "ordinals": [1.0, 2.0]})

    assert set(plain.payload) == {"question", "choices", "target", "context", "language"}
    assert known.digest == plain.digest
    back = Item.from_payload(
        dataset=known.dataset, source_id=known.source_id, cluster=known.cluster, payload=known.payload
    )
    assert back == known


def test_statements_are_asked_and_make_another_item() -> None:
    known = make_item(statements=("The man did it.", None))

    assert known.digest != make_item().digest
    back = Item.from_payload(
        dataset=known.dataset, source_id=known.source_id, cluster=known.cluster, payload=known.payload
    )
    assert back == known
