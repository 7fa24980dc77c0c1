"""The starter: a study that can be read as it is, and that overwrites nothing."""

from pathlib import Path

import pytest
import yaml

from contract.errors import UsageError
from contract.models import OpenAIModel
from ops.local.model import MODEL
from producer.plan import plan_jobs
from producer.starter import write_starter
from producer.study_file import read_study


def test_the_starter_is_a_study_on_the_embedded_model(tmp_path: Path) -> None:
    study_file, data_file = write_starter(tmp_path / "new" / "folder")
    loaded = read_study(study_file)

    assert (study_file.name, data_file.name) == ("study.yaml", "items.jsonl")
    assert len(loaded.items["harbour"]) == 3
    assert len(list(plan_jobs(loaded))) == 6
    (model,) = loaded.study.models
    assert isinstance(model, OpenAIModel)
    assert (model.model, model.base_url) == (MODEL, None)


def test_the_three_items_show_a_first_a_second_and_no_right_choice(tmp_path: Path) -> None:
    items = read_study(write_starter(tmp_path)[0]).items["harbour"]

    assert [item.target for item in items] == [0, 1, None]
    assert items[0].cluster == items[1].cluster != items[2].cluster


def test_every_field_has_a_line_with_a_comment(tmp_path: Path) -> None:
    lines = write_starter(tmp_path)[0].read_text("utf-8").splitlines()
    bare = [line for line in lines if line.strip() and "#" not in line]

    assert all(len(line) <= 120 for line in lines)
    assert bare == []


def test_what_is_commented_out_is_right_when_taken_in(tmp_path: Path) -> None:
    path = write_starter(tmp_path)[0]
    wanted = ("expect:", "base_url:", "api_key_env:", "limit:")
    text = path.read_text("utf-8")
    for field in wanted:
        text = text.replace(f"# {field}", field)
    path.write_text(text, encoding="utf-8")

    study = read_study(path).study

    assert study.limit == 100
    assert study.datasets[0].expect is not None
    assert "columns" not in yaml.safe_load(text)["datasets"][0]


def test_the_columns_that_are_commented_out_are_right_when_taken_in(tmp_path: Path) -> None:
    path = write_starter(tmp_path)[0]
    lines = path.read_text("utf-8").splitlines()
    at = next(number for number, line in enumerate(lines) if "# columns:" in line)
    lines[at : at + 5] = [line.replace("# ", "", 1).replace("#   ", "  ", 1) for line in lines[at : at + 5]]
    path.write_text("\n".join(lines).replace("items.jsonl ", "items.csv ") + "\n", encoding="utf-8")
    (tmp_path / "items.csv").write_text(
        "question_id,question,first,second,right,chapter,context\nx,Who?,Ada,Bruno,1,c1,Bruno did.\n", encoding="utf-8"
    )

    (item,) = read_study(path).items["harbour"]

    assert (item.source_id, item.choices, item.target, item.cluster) == ("x", ("Ada", "Bruno"), 1, "c1")


@pytest.mark.parametrize("name", ["study.yaml", "items.jsonl"])
def test_a_file_that_is_there_stays_and_nothing_is_written(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("mine", encoding="utf-8")

    with pytest.raises(UsageError, match=rf"{name} is there already and stays as it is; name another folder"):
        write_starter(tmp_path)

    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_text("utf-8") == "mine"


def test_a_file_is_no_folder_to_write_to(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("mine", encoding="utf-8")

    with pytest.raises(UsageError, match="name another folder"):
        write_starter(path)
    with pytest.raises(UsageError, match="name another folder"):
        write_starter(path / "below")
