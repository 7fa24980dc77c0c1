"""The study files that come along."""

from pathlib import Path

import pytest

from contract.errors import InputError
from producer.fetching.addresses import is_address, read_address
from producer.forecast import volumes
from producer.plan import plan_conditions
from producer.study_file import open_study, read_study

ROOT = Path(__file__).parents[2]


NAMES = {"LLAMA": "llama3.1:8b-italian", "GEMINI_FIRST": "gemini-3-flash", "GEMINI_SECOND": "gemini-3-pro"}


@pytest.fixture(autouse=True)
def named_models(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The models that a study cannot name by itself, and no data."""
    for name, model in NAMES.items():
        monkeypatch.setenv(name, model)
    for name in ("SQUAD_IT_2_PLAUSIBLE", "SQUAD_IT_2_ALL_WRONG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("BOTHWAYS_CACHE", str(tmp_path))


PLANNED = [path for path in sorted((ROOT / "studies").glob("*.yaml")) if not path.stem.startswith("answer_format")]
"""Those of the answer-format paper ask in orders and parts that only the data tell."""


@pytest.mark.parametrize("path", PLANNED, ids=lambda path: path.stem)
def test_a_study_that_comes_along_can_be_planned_with_or_without_its_data(path: Path) -> None:
    loaded = read_study(path, may_lack_data=True)

    assert loaded.study.study == path.stem
    assert plan_conditions(loaded)


def test_the_positional_bias_paper_asks_379_800_times() -> None:
    paper = read_study(ROOT / "studies/positional_bias.yaml", may_lack_data=True)

    assert sum(volume.jobs for volume in volumes(paper)) == 379_800
    assert [dataset.expect and dataset.expect.items for dataset in paper.study.datasets] == [7609] * 3 + [14_346, 807]
    assert [model.model for model in paper.study.models if model.name == "Llama-3.1-8B"] == ["llama3.1:8b-italian"]


def test_what_the_studies_fetch_lives_at_addresses_that_can_be_read() -> None:
    written = {
        dataset.name: dataset.path
        for path in (ROOT / "studies").glob("*.yaml")
        for dataset in open_study(path).study.datasets
        if is_address(dataset.path)
    }

    assert {name: read_address(path).name for name, path in written.items()} == {
        "bbq-gender": "Gender_identity.jsonl",
        "squad-it-low": "SQuAD_it-test.json.gz",
        "webgpt": "comparisons.jsonl",
        "winning-arguments": "cmv.tar.bz2",
    }


@pytest.mark.parametrize("name", NAMES)
def test_a_model_that_the_paper_does_not_name_has_no_default(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(name)

    with pytest.raises(InputError, match=rf"models\[\d\]\.model: the variable {name} is not set"):
        read_study(ROOT / "studies/positional_bias.yaml", may_lack_data=True)


def test_the_quantisation_check_asks_100_pairs_of_both_precisions() -> None:
    check = read_study(ROOT / "studies/positional_bias_quantisation.yaml", may_lack_data=True)

    assert sum(volume.jobs for volume in volumes(check)) == 2 * 2 * 2 * 100


def test_trying_a_deployment_asks_no_server() -> None:
    models = read_study(ROOT / "studies/simulated.yaml").study.models

    assert {model.provider for model in models} == {"simulated"}
