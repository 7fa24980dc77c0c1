"""The reading "first-number" of Likert answers: what counts as a rating, and what only looks like one."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contract.answers import InvalidReason
from contract.reading.first_number import FIRST_NUMBER, FIRST_NUMBER_VERSION, NumberTier, read_number

RATINGS = [
    ("4", 4),
    (" 4\n", 4),
    ("4.", 4),
    ("4!", 4),
    ("(4)", 4),
    ("[4]", 4),
    ("#4", 4),
    ("No. 4", 4),
    ("- 4", 4),
    ("+3", 3),
    ("**4**", 4),
    ("_4_", 4),
    ("`4`", 4),
    ("> 4", 4),
    ("# 4", 4),
    ("| 4 |", 4),
    ("$4$", 4),
    ("\\boxed{4}", 4),
    ("$\\boxed{\\text{4}}$", 4),
    ("４", 4),
    ("4️⃣", 4),
    ("\u200b4", 4),
    ("Rating: 4", 4),
    ("Rating:4", 4),
    ("Rating – 4", 4),
    ("Voto: 3", 3),
    ("4 - Agree", 4),
    ("4: Agree", 4),
    ("4. Agree", 4),
    ("4 = agree", 4),
    ("4 (agree)", 4),
    ("4, perché sono d'accordo", 4),
    ("I rate it 4.", 4),
    ("Direi 4", 4),
    ("4 stars", 4),
    ("4.0", 4),
    ("4/5", 4),
    ("4 / 5", 4),
    ("4 out of 5", 4),
    ("3 su 5", 3),
    ('{"rating": 4}', 4),
    ('{"rating": "4"}', 4),
    ("4\n\nI agree with the statement.", 4),
    ("4 or 5", 4),
    ("2 o 3", 2),
    ("7, no, 4", 4),
    ("In 2024 I would have said 4", 4),
    ("80% of people agree: 4", 4),
    ("<think>3? No, 2.</think>4", 4),
    ("<think>3</think>\n\n**4**", 4),
    ("<|channel|>analysis<|message|>2<|end|><|start|>assistant<|channel|>final<|message|>4", 4),
    ("4<|im_end|>", 4),
]

PASSED_OVER = [
    ("On a scale of 1 to 5, I'd say 4", 4),
    ("On a scale from 1 (strongly disagree) to 5 (strongly agree): 2", 2),
    ("Su una scala da 1 a 5: 3", 3),
    ("Between 1 and 5: 2", 2),
    ("1-5: 3", 3),
    ("(1 = strongly disagree, 5 = strongly agree) 4", 4),
    ("1=Strongly disagree, 2=Disagree, 3=Neither, 4=Agree, 5=Strongly agree\nAnswer: 2", 2),
    ("1. It is strong.\n2. It is old.\nMy rating: 4", 4),
    ("1) First\n2) Second\n\n3", 3),
    ("5-point scale: 3", 3),
    ("For COVID-19, 4", 4),
    ("Q1: 4", 4),
    ("The 2nd one is a 4", 4),
    ("It is 1/2 true: 3", 3),
    ("It costs $3, so 2", 2),
    ("It costs 3.50, so 2", 2),
    ("At 10:30 I would say 4", 4),
]

NO_RATING = [
    ("4.5", InvalidReason.UNREADABLE),
    ("4,5", InvalidReason.UNREADABLE),
    ("4½", InvalidReason.UNREADABLE),
    ("½", InvalidReason.UNREADABLE),
    ("4²", InvalidReason.UNREADABLE),
    (".5", InvalidReason.UNREADABLE),
    ("1,000", InvalidReason.UNREADABLE),
    ("3.1.2", InvalidReason.UNREADABLE),
    ("1-5", InvalidReason.UNREADABLE),
    ("1–5", InvalidReason.UNREADABLE),
    ("1 to 5", InvalidReason.UNREADABLE),
    ("da 1 a 5", InvalidReason.UNREADABLE),
    ("3-4", InvalidReason.UNREADABLE),
    ("4/10", InvalidReason.UNREADABLE),
    ("4 out of 10", InvalidReason.UNREADABLE),
    ("3 su 10", InvalidReason.UNREADABLE),
    ("80%", InvalidReason.UNREADABLE),
    ("4%", InvalidReason.UNREADABLE),
    ("4 %", InvalidReason.UNREADABLE),
    ("4 percent", InvalidReason.UNREADABLE),
    ("4 per cento", InvalidReason.UNREADABLE),
    ("$4", InvalidReason.UNREADABLE),
    ("€4", InvalidReason.UNREADABLE),
    ("4th", InvalidReason.UNREADABLE),
    ("Q4", InvalidReason.UNREADABLE),
    ("A4", InvalidReason.UNREADABLE),
    ("COVID-19", InvalidReason.UNREADABLE),
    ("10:30", InvalidReason.UNREADABLE),
    ("1. Strongly disagree\n2. Disagree", InvalidReason.UNREADABLE),
    ("1=Strongly disagree, 2=Disagree", InvalidReason.UNREADABLE),
    ("four", InvalidReason.UNREADABLE),
    ("quattro", InvalidReason.UNREADABLE),
    ("IV", InvalidReason.UNREADABLE),
    ("٤", InvalidReason.UNREADABLE),
    ("I agree.", InvalidReason.UNREADABLE),
    ("", InvalidReason.EMPTY),
    ("**", InvalidReason.EMPTY),
    ("<think>4</think>", InvalidReason.EMPTY),
    ("<think>4", InvalidReason.TRUNCATED),
]

OFF_SCALE = [
    ("10", 10),
    ("0", 0),
    ("6", 6),
    ("-3", -3),
    ("−3", -3),
    ("–3", -3),
    ("I would say 7.", 7),
    ("In 2024", 2024),
    ("10/5", 10),
    ("15 or 20", 15),
    ("100", 100),
]


@pytest.mark.parametrize(("completion", "number"), RATINGS + PASSED_OVER)
def test_the_first_whole_number_on_the_scale_is_the_rating(completion: str, number: int) -> None:
    reading = read_number(completion, lowest=1, highest=5)

    assert (reading.number, reading.tier, reading.reason, reading.off_scale) == (number, NumberTier.NUMBER, None, None)


@pytest.mark.parametrize(("completion", "reason"), NO_RATING)
def test_what_is_no_whole_number_of_its_own_is_no_rating(completion: str, reason: InvalidReason) -> None:
    reading = read_number(completion, lowest=1, highest=5)

    assert (reading.number, reading.reason, reading.off_scale) == (None, reason, None)


@pytest.mark.parametrize(("completion", "number"), OFF_SCALE)
def test_a_number_off_the_scale_is_invalid_and_kept(completion: str, number: int) -> None:
    reading = read_number(completion, lowest=1, highest=5)

    assert (reading.number, reading.reason, reading.off_scale) == (None, InvalidReason.OFF_SCALE, number)


@pytest.mark.parametrize(
    ("completion", "lowest", "highest", "number"),
    [
        ("10", 1, 10, 10),
        ("0", 0, 10, 0),
        ("-3", -5, 5, -3),
        ("−3", -5, 5, -3),
        ("–3", -5, 5, -3),
        ("+2", -2, 2, 2),
        ("from -2 to 2: -1", -2, 2, -1),
        ("2", 1, 2, 2),
        ("1/2", 1, 2, 1),
        ("7/9", 1, 9, 7),
        ("100", 1, 100, 100),
    ],
)
def test_any_scale_of_whole_numbers_may_be_given(completion: str, lowest: int, highest: int, number: int) -> None:
    assert read_number(completion, lowest=lowest, highest=highest).number == number


@pytest.mark.parametrize(
    ("completion", "highest", "number"),
    [
        ("1", 10, None),
        ("1", 5, 1),
        ("10", 10, 10),
        ("2", 10, 2),
        ("1.", 10, 1),
        ("Rating: 1", 10, None),
        ("9", 5, None),
    ],
)
def test_a_number_that_may_have_been_cut_off_is_no_rating(completion: str, highest: int, number: int | None) -> None:
    assert read_number(completion, lowest=1, highest=highest, cut_off=True).number == number


@pytest.mark.parametrize("completion", ["", "My rating would be", "four"])
def test_a_completion_cut_off_before_its_rating_is_truncated(completion: str) -> None:
    assert read_number(completion, lowest=1, highest=5, cut_off=True).reason is InvalidReason.TRUNCATED


@settings(deadline=None)
@given(st.integers(-20, 20), st.integers(1, 30), st.data())
def test_every_point_of_a_scale_reads_as_itself(lowest: int, width: int, data: st.DataObject) -> None:
    number = data.draw(st.integers(lowest, lowest + width))
    form = data.draw(st.sampled_from(["{}", "**{}**", "{}.", "Answer: {}", "({})", "My rating is {}, since it fits."]))

    assert read_number(form.format(number), lowest=lowest, highest=lowest + width).number == number


@settings(deadline=None)
@given(st.one_of(st.text(), st.text(alphabet="0123456789.,-/ %=()\nto")), st.integers(-3, 3), st.integers(1, 9))
def test_only_numbers_on_the_scale_are_read(text: str, lowest: int, width: int) -> None:
    reading = read_number(text, lowest=lowest, highest=lowest + width)

    assert reading.number is None or lowest <= reading.number <= lowest + width
    assert (reading.number is None) == (reading.reason is not None)
    assert (reading.off_scale is not None) == (reading.reason is InvalidReason.OFF_SCALE)


def test_hostile_texts_are_read_in_time() -> None:
    seconds = {}
    counted = "".join(f"{number}. a\n" for number in range(10_000))
    for piece in (
        counted,
        "1",
        "1 ",
        "1.",
        "1. a\n",
        "1/5 ",
        "1 to ",
        "1 (",
        "-",
        "-1",
        "%",
        "1 =",
        "9" * 30,
        "1 out of ",
        "a1 ",
    ):
        start = time.process_time()
        read_number(piece * (100_000 // len(piece)), lowest=1, highest=5)
        seconds[piece] = time.process_time() - start

    assert max(seconds.values()) < 5.0, seconds


def test_the_reading_has_a_name_and_a_version() -> None:
    assert (FIRST_NUMBER, FIRST_NUMBER_VERSION) == ("first-number", 1)
