"""How long a service waits for its stack, and what it says meanwhile."""

from collections.abc import Callable, Iterator

import pytest

from contract.errors import StackError, UnusableStackError, UsageError
from ops.cli import awaiting
from ops.cli.awaiting import await_stack


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(awaiting, "TRY_EVERY_S", 0.01)


def ends(*results: Exception | str) -> Callable[[], str]:
    """A look at the stack that comes to these ends, one after the other, and to the last one again and again."""
    left = list(results)

    def look() -> str:
        result = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(result, Exception):
            raise result
        return result

    return look


def told(captured: pytest.CaptureFixture[str]) -> Iterator[str]:
    """The lines on standard error."""
    return iter(captured.readouterr().err.splitlines())


def test_what_is_not_there_yet_is_waited_for(capsys: pytest.CaptureFixture[str]) -> None:
    found = await_stack(ends(StackError("no Postgres"), StackError("no Postgres"), StackError("no tables"), "it"), 60)

    assert found == "it"
    assert list(told(capsys)) == ["waiting: no Postgres", "waiting: no tables"]


def test_the_same_reason_is_told_again_after_a_while(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(awaiting, "TELL_EVERY_S", 0.0)

    await_stack(ends(StackError("no Postgres"), StackError("no Postgres"), "it"), 60)

    assert list(told(capsys)) == ["waiting: no Postgres"] * 2


def test_after_its_time_a_wait_ends_with_the_last_reason() -> None:
    with pytest.raises(StackError, match="no tables"):
        await_stack(ends(StackError("no Postgres"), StackError("no tables")), 0.1)


def test_without_a_time_nothing_is_waited_for(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(StackError, match="no Postgres"):
        await_stack(ends(StackError("no Postgres"), "it"), 0)

    assert list(told(capsys)) == []


@pytest.mark.parametrize("error", [UnusableStackError("the password is refused"), UsageError("no such thing")])
def test_what_no_wait_mends_ends_at_once(error: Exception, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(type(error)):
        await_stack(ends(StackError("no Postgres"), error, "it"), 60)

    assert list(told(capsys)) == ["waiting: no Postgres"]
