"""What can go wrong with an address or its file; `producer.data_files` says where in a study the address stands."""


class FetchError(Exception):
    """A file cannot be had, or must not be used; the text says what to do."""


class WrongHashError(FetchError):
    """A file is not the one that the study says it must be."""
