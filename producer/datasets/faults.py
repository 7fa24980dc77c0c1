"""What the study file says of a dataset and its data file does not bear out."""

from contract.errors import UsageError
from contract.yaml_lines import FieldPath


class DatasetFieldError(UsageError):
    """A field of the dataset that cannot be meant so; who knows the study file adds the line."""

    def __init__(self, field: FieldPath, problem: str) -> None:
        self.field = field
        self.problem = problem
        super().__init__(problem)
