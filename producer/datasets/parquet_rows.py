"""Rows of a Parquet file, read with polars where that is installed."""

from collections.abc import Iterator
from pathlib import Path

from contract.errors import InputError
from producer.datasets.files import open_data
from producer.datasets.rows import Row


def parquet_rows(path: Path) -> Iterator[Row]:
    """The rows of the file, numbered from 1."""
    try:
        # Not every host that plans a study has it, and only this layout needs it.
        import polars as pl
        from polars.exceptions import PanicException, PolarsError
    except ModuleNotFoundError:
        raise InputError(path, "a Parquet file is read with polars: pip install bothways[report]") from None
    with open_data(path) as file:
        try:
            frame = pl.read_parquet(file)
        except (PolarsError, PanicException) as error:
            detail = str(error).partition("\n")[0][:200]
            raise InputError(path, f"not a Parquet file that can be read: {detail}; write it again") from None
    for number, values in enumerate(frame.iter_rows(named=True), start=1):
        yield Row(path=path, number=number, values=values)
