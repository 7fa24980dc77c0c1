"""Likert and open answers: what is shown, and what is read."""

import pytest

from contract.answers import InvalidReason
from contract.completion import Completion
from contract.formats import Variant, likert, open_answers
from contract.forms import LikertFormat, OpenFormat, parse_form
from tests.builders import make_item

CHOICES = ("The man", "The woman", "Not enough information")
STATEMENTS = ("The man was the secretary.", "The woman was the secretary", None)


def scale(points: int, polarity: str) -> str:
    """How a scale is shown."""
    return likert.scale(Variant.from_spec({"points": points, "polarity": polarity}))


@pytest.mark.parametrize(
    ("points", "polarity", "shown"),
    [
        (4, "positive", "1=Strongly disagree, 2=Disagree, 3=Agree, 4=Strongly agree"),
        (4, "negative", "1=Strongly agree, 2=Agree, 3=Disagree, 4=Strongly disagree"),
        (5, "positive", "1=Strongly disagree, 2=Disagree, 3=Neither agree nor disagree, 4=Agree, 5=Strongly agree"),
        (2, "negative", "1=Strongly agree, 2=Strongly disagree"),
        (9, "positive", "1=Strongly disagree, 2, 3, 4, 5, 6, 7, 8, 9=Strongly agree"),
        (10, "negative", "1=Strongly agree, 2, 3, 4, 5, 6, 7, 8, 9, 10=Strongly disagree"),
    ],
)
def test_short_scales_label_every_point_and_long_ones_their_ends(points: int, polarity: str, shown: str) -> None:
    assert scale(points, polarity) == shown


def test_a_statement_is_rated_behind_its_paragraph_with_the_ends_of_the_scale() -> None:
    item = make_item(choices=CHOICES, context="They were late.", statements=STATEMENTS)
    negative = Variant(points=4, polarity="negative")

    assert likert.rating_question(item, negative, 1) == (
        "They were late. To what extent do you agree with the following statement: The man was the secretary. "
        "Please rate your agreement from 1 (strongly agree) to 4 (strongly disagree)."
    )
    assert "The woman was the secretary. Please" in likert.rating_question(item, negative, 2)


def test_a_question_without_a_paragraph_stands_before_its_statement_itself() -> None:
    item = make_item(choices=CHOICES, question="Who was it?", statements=STATEMENTS)

    assert likert.rating_question(item, Variant(points=2, polarity="positive"), 1).startswith(
        "Who was it? To what extent"
    )


def test_only_choices_with_a_statement_are_rated() -> None:
    assert likert.parts(make_item(choices=CHOICES, statements=STATEMENTS)) == (1, 2)
    assert likert.parts(make_item(choices=CHOICES)) == ()
    with pytest.raises(ValueError, match="choice 3 has no statement"):
        likert.rating_question(make_item(statements=STATEMENTS), Variant(points=2, polarity="positive"), 3)


@pytest.mark.parametrize(
    ("text", "points", "rating", "reason"),
    [
        ("3", 4, 3, None),
        ("I would say 2.", 4, 2, None),
        ("7", 5, None, InvalidReason.OFF_SCALE),
        ("", 5, None, InvalidReason.EMPTY),
        ("I agree.", 5, None, InvalidReason.UNREADABLE),
    ],
)
def test_a_rating_is_the_first_whole_number_on_the_scale(
    text: str, points: int, rating: int | None, reason: InvalidReason | None
) -> None:
    answer = likert.read(Completion(text=text), Variant(points=points, polarity="positive"))

    assert (answer.choice, answer.rating, answer.number, answer.reason) == (None, rating, rating, reason)
    assert answer.valid is (rating is not None)


def test_an_open_answer_is_all_that_was_said_without_the_reasoning_of_the_model() -> None:
    answer = open_answers.read(Completion(text="<think>Hm.</think>\nIt was\nthe man. ", finish_reason="length"))

    assert (answer.text, answer.tier) == ("It was\nthe man.", "whole")
    assert open_answers.read(Completion(text=" \n")).reason is InvalidReason.EMPTY
    assert open_answers.read(Completion(text="<think>Hm.")).reason is InvalidReason.TRUNCATED


@pytest.mark.parametrize(
    ("text", "choice", "tier"),
    [
        ("The woman", 1, "exact"),
        ("2. The woman", 1, "exact"),
        (" the woman.", 1, "exact"),
        ("The best match is: The man.", 0, "contained"),
        ("3) Not enough information", 2, "exact"),
    ],
)
def test_an_annotation_names_a_choice_by_its_text(text: str, choice: int, tier: str) -> None:
    answer = open_answers.read_annotation(Completion(text=text), make_item(choices=CHOICES))

    assert (answer.choice, answer.tier) == (choice, tier)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("Either the man or the woman", InvalidReason.BOTH),
        ("Nobody", InvalidReason.UNREADABLE),
        ("2", InvalidReason.UNREADABLE),
        ("", InvalidReason.EMPTY),
    ],
)
def test_an_annotation_that_names_none_or_several_is_never_guessed(text: str, reason: InvalidReason) -> None:
    answer = open_answers.read_annotation(Completion(text=text), make_item(choices=CHOICES))

    assert (answer.choice, answer.reason) == (None, reason)


def test_of_choices_that_contain_each_other_the_longer_one_is_meant() -> None:
    item = make_item(choices=("Men", "Women", "Refused"))

    assert open_answers.read_annotation(Completion(text="I choose Women."), item).choice == 1
    assert open_answers.read_annotation(Completion(text="I choose Men."), item).choice == 0


@pytest.mark.parametrize(
    "form",
    [
        LikertFormat(format="likert", prompt="rating", points=(2, 5), polarity=("negative",)),
        OpenFormat.model_validate({"format": "open", "prompt": "p", "annotate": {"prompt": "q"}}),
        OpenFormat.model_validate({"format": "open", "prompt": "p", "annotate": {"prompt": "q"}}).annotate,
    ],
)
def test_a_form_comes_back_from_the_row_that_holds_it(form: LikertFormat) -> None:
    assert parse_form(form.model_dump(mode="json")) == form
