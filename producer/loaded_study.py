"""A study with everything that its file refers to."""

from dataclasses import dataclass, field
from pathlib import Path

from contract.errors import InputError
from contract.forms import Form
from contract.items import Item
from contract.prompts import PromptSet
from contract.study import Dataset, Study
from contract.yaml_lines import FieldPath, YamlDocument, print_path
from producer.data_files import FoundFiles


@dataclass(frozen=True, kw_only=True)
class LoadedStudy:
    """A study with everything it refers to: its items by dataset and its prompts by the names the file gives them.

    `expected`: how many items the datasets have whose files are not at hand; they have no items here. `files`: where
    the files of each dataset are, or why they are not at hand.
    """

    path: Path
    study: Study
    items: dict[str, list[Item]]
    prompts: dict[str, PromptSet]
    document: YamlDocument
    expected: dict[str, int] = field(default_factory=dict)
    files: dict[str, FoundFiles] = field(default_factory=dict)

    def prompt(self, dataset: Dataset, form: Form) -> PromptSet:
        """The instrument that `dataset` is asked with in `form`."""
        return self.prompts[form.prompt or dataset.prompt or ""]

    def refuse(self, field: FieldPath, problem: str) -> InputError:
        """The error that says what is wrong with `field`, with its line."""
        return InputError(self.path, problem, line=self.document.line_of(field), field=print_path(field))
