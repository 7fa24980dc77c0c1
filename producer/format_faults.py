"""What keeps the items of a dataset from being asked in a format."""

from contract.formats import asking
from contract.forms import ClosedFormat, Form, LikertFormat, Step
from contract.items import Item
from contract.study import Dataset, Study
from contract.yaml_lines import FieldPath
from producer.loaded_study import LoadedStudy


def countable(study: Study) -> bool:
    """Whether its jobs can be counted by its number of items: other orders, and statements, only the data tell."""
    return all(
        form.each is None if isinstance(form, Step) else isinstance(form, ClosedFormat) and form.orders == "both"
        for form in study.forms
    )


def check_form_fits(loaded: LoadedStudy, dataset: Dataset, form: Form, items: list[Item], place: FieldPath) -> None:
    """Every item must have the orders that a closed format asks for, and a statement where statements are rated.

    Where statements are made, a choice that one can be made of.
    """
    for item in items:
        if isinstance(form, ClosedFormat):
            try:
                asking.variants(form, item)
            except ValueError as error:
                at: FieldPath = ("formats", loaded.study.formats.index(form), "orders")
                raise loaded.refuse(at, f"{error} (item {item.source_id} of {dataset.name})") from None
        if isinstance(form, LikertFormat) and not asking.parts(form, item):
            problem = f"item {item.source_id} has no statement to be rated; give statements in the data"
            raise loaded.refuse(place, problem)
        if isinstance(form, Step) and not asking.parts(form, item):
            raise loaded.refuse(place, f"item {item.source_id} has no choice that says something")
