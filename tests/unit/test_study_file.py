"""Study files: what is wrong is refused with file, line, field and what would be right; nothing is guessed."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from contract.errors import InputError
from contract.models import Model
from contract.prompts import load_prompt
from producer.study_file import read_study, study_name
from tests.builders import item_rows, write_study

CAPITALS = {"name": "capitals", "loader": "items", "path": "items.jsonl", "prompt": "two-choice-low"}
PAIRS = CAPITALS | {"prompt": "more-persuasive"}
SIM = {"name": "sim", "provider": "simulated"}
SERVED = {"name": "small", "provider": "openai", "model": "smollm2"}
GEMINI = {"name": "flash", "provider": "gemini", "model": "gemini-2.5-flash"}
LLAMA = {"name": "llama", "provider": "ollama", "model": "llama3.1:8b"}
CLOSED = {"format": "closed"}
OWN_PROMPTS = {
    "misspelt.txt": "{question}\n{choises}\n",
    "no-question.txt": "{choices}\n",
    "one-of-two.txt": "{question}\nFirst: {first}\n",
    "extra.txt": "{question}\n{choices}\n{answer}\n",
    "half-header.txt": "a header without its sign\n---\n{question}\n{choices}\n",
    "nul.txt": "{question}\x00\n{choices}\n",
}


def without(entry: dict[str, Any], field: str) -> dict[str, Any]:
    """The entry less one field."""
    return {key: value for key, value in entry.items() if key != field}


def refusal(path: Path) -> InputError:
    """The error that reading this study file ends with."""
    with pytest.raises(InputError) as caught:
        read_study(path)
    return caught.value


@pytest.mark.parametrize(
    ("changes", "begins", "field", "right"),
    [
        # unknown fields, on every level
        pytest.param({"repeat": 2}, "repeat: 2", "repeat", r"unknown field; did you mean repeats\?", id="study"),
        pytest.param({"xyz": 2}, "xyz: 2", "xyz", "unknown field; known here: study, description, datasets", id="far"),
        pytest.param(
            {"datasets": [CAPITALS | {"promt": "x"}]},
            "  promt:",
            "datasets[0].promt",
            r"did you mean prompt\?",
            id="dataset",
        ),
        pytest.param(
            {"datasets": [without(CAPITALS, "loader") | {"lodaer": "items"}]},
            "  lodaer:",
            "datasets[0].lodaer",
            r"did you mean loader\?",
            id="dataset, a field that must be there",
        ),
        pytest.param(
            {"datasets": [CAPITALS | {"expect": {"items": 4, "item": 4}}]},
            "    item: 4",
            "datasets[0].expect.item",
            r"did you mean items\?",
            id="expect",
        ),
        pytest.param(
            {"models": [SIM, SERVED | {"timeout": 3}]},
            "  timeout:",
            "models[1].timeout",
            r"did you mean timeout_s\?",
            id="served model",
        ),
        pytest.param(
            {"models": [SERVED | {"options": {}}]},
            "  options:",
            "models[0].options",
            "known here: provider, name, model, base_url",
            id="field of another provider",
        ),
        pytest.param(
            {"models": [SIM | {"modle": "x"}]}, "  modle:", "models[0].modle", r"did you mean model\?", id="simulated"
        ),
        pytest.param(
            {"models": [SIM | {"options": {"prefer_first": 1}}]},
            "    prefer_first:",
            "models[0].options.prefer_first",
            r"did you mean prefers_first\?",
            id="options",
        ),
        pytest.param(
            {"formats": [CLOSED | {"order": "both"}]},
            "  order:",
            "formats[0].order",
            "did you mean orders",
            id="format",
        ),
        pytest.param(
            {"formats": [CLOSED | {"sampling": {"temprature": 1}}]},
            "    temprature:",
            "formats[0].sampling.temprature",
            r"did you mean temperature\?",
            id="sampling",
        ),
        pytest.param({"retry": {"invalids": 1}}, "  invalids:", "retry.invalids", "did you mean invalid", id="retry"),
        pytest.param({"bundles": {"sise": 1}}, "  sise:", "bundles.sise", r"did you mean size\?", id="bundles"),
        # missing fields
        pytest.param(
            {"datasets": [without(CAPITALS, "path")]},
            "- name: capitals",
            "datasets[0].path",
            "is missing",
            id="no path",
        ),
        pytest.param(
            {"models": [without(SERVED, "model")]}, "- name: small", "models[0].model", "missing", id="no model"
        ),
        pytest.param({"formats": [{"orders": "both"}]}, "- orders:", "formats[0]", "format is missing", id="no format"),
        pytest.param(
            {"models": [{"name": "sim"}]},
            "- name: sim",
            "models[0]",
            "provider is missing: openai, ollama, gemini or simulated",
            id="no provider",
        ),
        # wrong types and values
        pytest.param({"study": 5}, "study: 5", "study", "valid string; found '5'", id="number as a name"),
        pytest.param({"study": "my study"}, "study: my", "study", "found 'my study'", id="space in a name"),
        pytest.param({"repeats": "3"}, "repeats: '3'", "repeats", "valid integer; found '3'", id="text as a number"),
        pytest.param({"repeats": 2.0}, "repeats: 2.0", "repeats", "valid integer; found '2.0'", id="fraction"),
        pytest.param({"repeats": True}, "repeats: true", "repeats", "valid integer; found 'True'", id="truth"),
        pytest.param({"repeats": 0}, "repeats: 0", "repeats", "greater than or equal to 1; found '0'", id="none"),
        pytest.param({"datasets": None}, "datasets: null", "datasets", "list", id="null instead of a list"),
        pytest.param({"models": "sim"}, "models: sim", "models", "list", id="text instead of a list"),
        pytest.param({"models": SIM}, "models:", "models", "list", id="one entry instead of a list"),
        pytest.param({"models": ["sim"]}, "- sim", "models[0]", "(?i)fields|mapping|dictionary", id="text as an entry"),
        pytest.param({"models": []}, "models: []", "models", "at least (1|one)", id="no models"),
        pytest.param(
            {"formats": [CLOSED | {"sampling": {"temperature": "hot"}}]},
            "    temperature: hot",
            "formats[0].sampling.temperature",
            "valid number; found 'hot'",
            id="word as a temperature",
        ),
        pytest.param(
            {"formats": [CLOSED | {"sampling": {"temperature": float("nan")}}]},
            "    temperature: .nan",
            "formats[0].sampling.temperature",
            "finite number",
            id="no number as a temperature",
        ),
        pytest.param(
            {"models": [SERVED | {"base_url": "localhost:8000"}]},
            "  base_url:",
            "models[0].base_url",
            "https?",
            id="address without scheme",
        ),
        # words that are not known
        pytest.param(
            {"models": [SIM | {"provider": "simulate"}]},
            "- name: sim",
            "models[0]",
            r"unknown provider 'simulate'; did you mean simulated\?",
            id="provider misspelt",
        ),
        pytest.param(
            {"models": [SIM | {"provider": "carrier-pigeon"}]},
            "- name: sim",
            "models[0]",
            "unknown provider 'carrier-pigeon'; known here: openai, ollama, gemini, simulated",
            id="unknown provider",
        ),
        pytest.param(
            {"datasets": [CAPITALS | {"loader": "item"}]},
            "  loader: item",
            "datasets[0].loader",
            "must be 'items', 'uncertainty', 'squad_it', .* 'opinion_qa' or 'global_opinion_qa', not 'item'",
            id="unknown loader",
        ),
        pytest.param(
            {"formats": [{"format": "lickert"}]},
            "- format: lickert",
            "formats[0]",
            "unknown format 'lickert'; did you mean likert?",
            id="unknown format",
        ),
        pytest.param(
            {"formats": [CLOSED, dict(CLOSED)]}, "- format: closed", "formats[1]", "give one entry", id="two formats"
        ),
        # entries that do not go together
        pytest.param(
            {"datasets": [CAPITALS, dict(CAPITALS)]},
            "- name: capitals",
            "datasets[1].name",
            r"capitals is also the name of datasets\[0\]; names must differ",
            id="two datasets of one name",
        ),
        pytest.param(
            {"models": [SIM, SERVED, dict(SIM)]},
            "- name: sim",
            "models[2].name",
            r"sim is also the name of models\[0\]; names must differ",
            id="two models of one name",
        ),
        pytest.param(
            {"datasets": [CAPITALS | {"loader": "uncertainty"}]},
            "- name: capitals",
            "datasets[0].setting",
            "need setting: low, medium or high",
            id="uncertainty without setting",
        ),
        pytest.param(
            {"datasets": [CAPITALS | {"setting": "low"}]},
            "  setting: low",
            "datasets[0].setting",
            "no other loader takes one",
            id="setting without uncertainty",
        ),
        pytest.param(
            {"datasets": [CAPITALS | {"expect": {"items": 5}}]},
            "    items: 5",
            "datasets[0].expect.items",
            "the file holds 4 items, the study expects 5",
            id="expectation not met",
        ),
        # files beside the study file
        pytest.param(
            {"datasets": [CAPITALS | {"path": "gone.jsonl"}]},
            "  path: gone.jsonl",
            "datasets[0].path",
            "there is no file .*gone.jsonl",
            id="no data file",
        ),
        pytest.param(
            {"datasets": [CAPITALS | {"prompt": "two-choice-lo"}]},
            "  prompt:",
            "datasets[0].prompt",
            'no prompt "two-choice-lo"; known: .*two-choice-low',
            id="unknown prompt",
        ),
        pytest.param(
            {"datasets": [CAPITALS | {"prompt": "gone.txt"}]},
            "  prompt:",
            "datasets[0].prompt",
            "there is no .*gone.txt",
            id="no prompt file",
        ),
        pytest.param(
            {"datasets": [CAPITALS | {"prompt": "misspelt.txt"}]},
            "  prompt:",
            "datasets[0].prompt",
            "places {question} and {choices}",
            id="placeholder misspelt",
        ),
        pytest.param(
            {"datasets": [CAPITALS | {"prompt": "no-question.txt"}]},
            "  prompt:",
            "datasets[0].prompt",
            "places {question} and {choices}",
            id="no place for the question",
        ),
        pytest.param(
            {"datasets": [CAPITALS | {"prompt": "extra.txt"}]},
            "  prompt:",
            "datasets[0].prompt",
            "nothing else in braces",
            id="placeholder that nothing fills",
        ),
        pytest.param(
            {"datasets": [CAPITALS | {"prompt": "one-of-two.txt"}]},
            "  prompt:",
            "datasets[0].prompt",
            "or {first} and {second} with words of its own",
            id="a place for one choice only",
        ),
        pytest.param(
            {"datasets": [PAIRS], "retry": {"strategy": "constrain"}},
            "  strategy: constrain",
            "retry.strategy",
            "speaks of letters, and more-persuasive of capitals shows none; take resample or remind",
            id="limited to letters that are not shown",
        ),
        pytest.param(
            {"datasets": [PAIRS], "formats": [{"format": "closed", "constrain": True}]},
            "  constrain: true",
            "formats[0].constrain",
            "speaks of letters, and more-persuasive of capitals shows none; leave constrain out",
            id="answers limited to letters that are not shown",
        ),
        pytest.param(
            {"datasets": [PAIRS], "retry": {"strategy": "remind"}},
            "  strategy: remind",
            "retry.strategy",
            "more-persuasive of capitals shows none; give a reminder without {letters}",
            id="reminded of letters that are not shown",
        ),
        pytest.param(
            {"datasets": [CAPITALS | {"prompt": "half-header.txt"}]},
            "  prompt:",
            "datasets[0].prompt",
            'every line above "---" begins with "#"',
            id="half a header",
        ),
        pytest.param(
            {"datasets": [CAPITALS | {"prompt": "nul.txt"}]},
            "  prompt:",
            "datasets[0].prompt",
            "NUL",
            id="NUL in a prompt",
        ),
        # text that no row can hold
        # who serves the models
        pytest.param(
            {"models": [GEMINI | {"options": {"thinking": "much"}}]},
            "    thinking:",
            "models[0].options.thinking",
            "must be 'off', 'minimal', 'low', 'medium' or 'high', not 'much'",
            id="thinking",
        ),
        pytest.param(
            {"models": [GEMINI | {"options": {"thinkin": "off"}}]},
            "    thinkin:",
            "models[0].options.thinkin",
            r"unknown field; did you mean thinking\?",
            id="a field of a model's options",
        ),
        pytest.param(
            {"models": [LLAMA | {"api_key_env": "KEY"}]},
            "  api_key_env:",
            "models[0].api_key_env",
            "unknown field; known here: provider, name, model, options, timeout_s",
            id="a key for Ollama",
        ),
        pytest.param(
            {"models": [LLAMA | {"options": {"context": 10}}]},
            "    context:",
            "models[0].options.context",
            "greater than or equal to 256; found '10'",
            id="context",
        ),
        pytest.param(
            {"models": [LLAMA | {"options": {"digest": "latest"}}]},
            "    digest:",
            "models[0].options.digest",
            "must be the first 12 to 64 hexadecimal digits of the model's digest",
            id="digest",
        ),
        pytest.param(
            {"models": [SERVED | {"headers": {"X-Api-Key": "sk-123"}}]},
            "  headers:",
            "models[0].headers",
            r"the header X-Api-Key may hold a secret: write it as \$\{VARIABLE\}, set where the worker runs$",
            id="a secret in a header",
        ),
        pytest.param(
            {"models": [SERVED | {"headers": {"X-Title": "${BOTHWAYS_DATABASE_URL}"}}]},
            "  headers:",
            "models[0].headers",
            "must not be one of Bothways' own variables$",
            id="our own secret in a header",
        ),
        pytest.param(
            {"models": [SERVED | {"headers": ["X-Title"]}]},
            "  headers:",
            "models[0].headers",
            "must be a mapping of header names to values$",
            id="headers as a list",
        ),
        pytest.param(
            {"models": [SERVED | {"pools": []}]}, "  pools:", "models[0].pools", "at least (1|one)", id="no pools"
        ),
        pytest.param(
            {"models": [SERVED], "formats": [CLOSED | {"constrain": True}]},
            "- name: small",
            "models[0]",
            "formats.0. constrains the answers: add constrains_by",
            id="a limit that the server cannot be told",
        ),
        pytest.param(
            {"models": [SERVED], "retry": {"invalid": 1, "strategy": "constrain"}},
            "- name: small",
            "models[0]",
            "retry constrains the answers: add constrains_by",
            id="a limit for the second asking that the server cannot be told",
        ),
        pytest.param(
            {"retry": {"strategy": "beg"}},
            "  strategy:",
            "retry.strategy",
            "must be 'resample', 'remind' or 'constrain', not 'beg'",
            id="strategy",
        ),
        pytest.param(
            {"retry": {"reminder": "One letter!"}},
            "  reminder:",
            "retry.reminder",
            "only strategy remind sends it",
            id="a reminder that nobody sends",
        ),
        pytest.param(
            {"retry": {"strategy": "remind", "reminder": "One of {choices}!"}},
            "  reminder:",
            "retry.reminder",
            r"no value for choices \(item q0 of capitals\)",
            id="a reminder with another placeholder",
        ),
        pytest.param(
            {"formats": [CLOSED | {"sampling": {"logprobs": 21}}]},
            "    logprobs:",
            "formats[0].sampling.logprobs",
            "less than or equal to 20; found '21'",
            id="logprobs",
        ),
        pytest.param(
            {"formats": [CLOSED | {"reading": "lenient"}]},
            "  reading:",
            "formats[0].reading",
            "^must be strict, first-letter or exact-letter; found 'lenient'$",
            id="reading",
        ),
        pytest.param({"description": "a\0b"}, "description:", "description", "NUL", id="NUL"),
        pytest.param(
            {"models": [SERVED | {"model": "smol\0"}]}, "  model:", "models[0].model", "NUL", id="NUL in a model's name"
        ),
    ],
)
def test_a_bad_study_is_refused_with_its_line_field_and_what_would_be_right(
    tmp_path: Path, changes: dict[str, Any], begins: str, field: str, right: str
) -> None:
    path = write_study(tmp_path, **changes)
    for name, body in OWN_PROMPTS.items():
        (tmp_path / name).write_text(body, encoding="utf-8")
    lines = [number for number, text in enumerate(path.read_text("utf-8").splitlines(), 1) if text.startswith(begins)]

    error = refusal(path)

    assert re.search(right, error.problem)
    assert (error.path, error.field) == (path, field)
    assert error.line == lines[-1]
    assert str(error) == f"{path}:{error.line}: {field}: {error.problem}"


def test_half_a_surrogate_pair_in_a_study_file_is_refused(tmp_path: Path) -> None:
    path = write_study(tmp_path)
    path.write_text(path.read_text("utf-8") + 'description: "a\\ud800b"\n', encoding="utf-8")

    error = refusal(path)

    assert (error.line, error.field) == (len(path.read_text("utf-8").splitlines()), "description")


@pytest.mark.parametrize(
    ("content", "line", "right"),
    [
        pytest.param(b"", None, "the file is empty; a study file begins with `study: NAME`", id="empty"),
        pytest.param(b"# nothing yet\n", None, "the file is empty", id="only a comment"),
        pytest.param(b"- study: trial\n", 1, "a study file is a mapping that begins with `study: NAME`", id="list"),
        pytest.param(b"trial\n", 1, "a study file is a mapping", id="one word"),
        pytest.param(b"study: trial\n\tdatasets: []\n", 2, r"not valid YAML: .*'\\t'", id="tab"),
        pytest.param(b"study: trial\nstudy: again\n", 2, "stands twice; keep one", id="field twice"),
        pytest.param(b"study: trial\nmodels: [\n", 3, "not valid YAML", id="list left open"),
        pytest.param(b"study: citt\xe0\n", None, "not UTF-8 .byte 11.; save it as UTF-8", id="Latin-1"),
        pytest.param("study: trial\n".encode("utf-16"), None, "not UTF-8", id="UTF-16"),
    ],
)
def test_a_file_that_is_no_study_file_is_refused(tmp_path: Path, content: bytes, line: int | None, right: str) -> None:
    path = tmp_path / "study.yaml"
    path.write_bytes(content)

    error = refusal(path)

    assert re.search(right, error.problem)
    assert (error.path, error.line) == (path, line)


@pytest.mark.parametrize(
    ("name", "problem"), [(".", "cannot be read: Is a directory"), ("gone.yaml", "there is no such file")], ids=str
)
def test_what_cannot_be_opened_is_refused(tmp_path: Path, name: str, problem: str) -> None:
    path = tmp_path / name

    assert str(refusal(path)) == f"{path}: {problem}"


def test_a_study_without_its_name_is_refused(tmp_path: Path) -> None:
    path = write_study(tmp_path)
    path.write_text(path.read_text("utf-8").replace("study: trial\n", ""), encoding="utf-8")

    error = refusal(path)

    assert (error.line, error.field, error.problem) == (1, "study", "is missing")


@pytest.mark.parametrize(
    "changes",
    [
        {"repeats": 0},
        {"datasets": [CAPITALS | {"loader": "item"}]},
        {"models": [SIM, SERVED | {"timeout_s": 0}]},
        {"formats": [CLOSED | {"sampling": {"seed": -1}}]},
    ],
    ids=["study", "dataset", "model", "format"],
)
def test_a_single_error_is_not_counted_as_several(tmp_path: Path, changes: dict[str, Any]) -> None:
    assert "more to mend" not in refusal(write_study(tmp_path, **changes)).problem


def test_one_error_is_told_and_the_others_are_counted(tmp_path: Path) -> None:
    error = refusal(write_study(tmp_path, repeats="many", limit="few", retry={"faults": 0}))

    assert error.field == "repeats"
    assert error.problem.endswith("(and 2 more to mend)")


@pytest.mark.parametrize(
    "entry",
    [{"api_key_env": "sk-verysecret"}, {"api_key": "sk-verysecret"}, {"base_url": "https://me:sk-verysecret@host/v1"}],
    ids=["instead of its variable's name", "in a field of its own", "in an address"],
)
def test_a_key_in_a_study_file_is_refused_and_not_printed(tmp_path: Path, entry: dict[str, str]) -> None:
    error = refusal(write_study(tmp_path, models=[SERVED | entry]))

    assert error.field == f"models[0].{next(iter(entry))}"
    assert "verysecret" not in str(error)


def test_a_bad_row_of_the_data_file_is_told_with_the_data_file(tmp_path: Path) -> None:
    path = write_study(tmp_path, items=[*item_rows(2), item_rows(3)[2] | {"target": 2}])

    error = refusal(path)

    assert (error.path, error.row, error.field) == (tmp_path / "items.jsonl", 3, "target")


@pytest.mark.parametrize(
    ("language", "problem"),
    [("fr", 'no body for language "fr"; it has en, it'), (None, "an item without language; it has en, it")],
    ids=["French", "none"],
)
def test_items_in_a_language_that_the_prompt_does_not_speak_are_refused(
    tmp_path: Path, language: str | None, problem: str
) -> None:
    path = write_study(tmp_path, items=[row | {"language": language} for row in item_rows(2)])

    error = refusal(path)

    assert error.field == "datasets[0].prompt"
    assert problem in error.problem


def test_a_good_study_is_read_with_its_items_and_prompts(tmp_path: Path) -> None:
    loaded = read_study(write_study(tmp_path, items=3, repeats=2))

    assert (loaded.study.study, loaded.study.repeats) == ("trial", 2)
    assert [item.source_id for item in loaded.items["capitals"]] == ["q0", "q1", "q2"]
    assert loaded.prompts["two-choice-low"] == load_prompt("two-choice-low")


@pytest.mark.parametrize(
    "rewrite",
    [lambda raw: b"\xef\xbb\xbf" + raw, lambda raw: raw.replace(b"\n", b"\r\n")],
    ids=["byte order mark", "CRLF"],
)
def test_a_study_file_from_any_editor_is_the_same_study(tmp_path: Path, rewrite: Callable[[bytes], bytes]) -> None:
    path = write_study(tmp_path)
    plain = read_study(path).study
    path.write_bytes(rewrite(path.read_bytes()))

    assert read_study(path).study == plain


def test_a_limit_keeps_the_first_items_of_each_dataset_and_goes_over_the_file_s(tmp_path: Path) -> None:
    other = CAPITALS | {"name": "again", "expect": {"items": 5}}
    path = write_study(tmp_path, items=5, limit=3, datasets=[CAPITALS, other])

    by_file, by_hand = read_study(path), read_study(path, limit=2)

    assert [len(items) for items in by_file.items.values()] == [3, 3]
    assert {name: [item.source_id for item in items] for name, items in by_hand.items.items()} == {
        "capitals": ["q0", "q1"],
        "again": ["q0", "q1"],
    }
    assert by_hand.study.limit == 2


@pytest.mark.parametrize("header", ["", "---\n", "# where it is from\n---\n"], ids=["none", "empty", "one line"])
def test_a_prompt_file_of_one_s_own_serves_every_language_without_its_header(tmp_path: Path, header: str) -> None:
    body = "{context}\n---\n" if header else "{context}\n"
    body += '{question}\n{choices}\nAnswer as {"letter": "A"}.'
    (tmp_path / "own.txt").write_text(header + body + "\n", encoding="utf-8")
    rows = [row | {"language": language} for row, language in zip(item_rows(2), ("fr", None), strict=True)]
    path = write_study(tmp_path, items=rows, datasets=[CAPITALS | {"prompt": "own.txt"}])

    prompt = read_study(path).prompts["own.txt"]

    assert (prompt.name, prompt.body("fr"), prompt.body(None)) == ("own", body, body)


@pytest.mark.parametrize("entry", [SIM, SERVED], ids=["simulated", "openai"])
def test_whole_numbers_are_fine_where_a_fraction_may_stand(tmp_path: Path, entry: dict[str, Any]) -> None:
    (model,) = read_study(write_study(tmp_path, models=[entry | {"timeout_s": 5}])).study.models

    read: Model = model
    assert read.timeout_s == 5.0


def test_the_name_of_a_study_is_read_without_its_data(tmp_path: Path) -> None:
    path = write_study(tmp_path, study="other", models=[])
    (tmp_path / "items.jsonl").unlink()

    assert study_name(path) == "other"


def test_a_file_that_names_no_study_has_no_name(tmp_path: Path) -> None:
    path = tmp_path / "study.yaml"
    path.write_text("datasets: []\n", encoding="utf-8")

    with pytest.raises(InputError, match=r"study.yaml:1: study: is missing"):
        study_name(path)
