"""The study files that come along."""

from pathlib import Path

import pytest

from producer.plan import plan_conditions
from producer.study_file import read_study

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("path", sorted((ROOT / "studies").glob("*.yaml")), ids=lambda path: path.stem)
def test_a_study_that_comes_along_can_be_planned_with_or_without_its_data(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SQUAD_IT", raising=False)

    loaded = read_study(path, may_lack_data=True)

    assert loaded.study.study == path.stem
    assert plan_conditions(loaded)


def test_trying_a_deployment_asks_no_server() -> None:
    models = read_study(ROOT / "studies/simulated.yaml").study.models

    assert {model.provider for model in models} == {"simulated"}
