"""The command `bothways`. Errors that a person can cause end in one line and an exit code, never in a traceback."""

import sys
from io import TextIOWrapper

import typer
from typer.exceptions import TyperException

from contract.errors import BothwaysError, UsageError
from ops.cli import audit, build, check, compare, fetch, imports, machines, plan, reparse, services, steer, studies
from ops.cli.terminal import Exit, err, visible

app = typer.Typer(
    help="Ask every question both ways, at scale: does a language model answer the question or the layout?",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
for command in (
    studies.init,
    check.check,
    plan.plan,
    fetch.fetch,
    studies.run,
    imports.import_,
    studies.status,
    studies.show,
    studies.report,
    compare.compare,
    reparse.reparse,
    build.build,
    audit.audit,
    steer.retry,
    steer.pause,
    steer.resume,
    steer.cancel,
    machines.hosts,
    machines.health,
    machines.pools,
    services.up,
    services.demo,
    services.worker,
    services.dispatch,
    services.migrate,
):
    app.command(command.__name__.rstrip("_"))(command)


def main() -> None:
    """The entry point: every error of ours becomes one line on standard error and an exit code."""
    _tolerate_poor_terminals()
    try:
        # Without its standalone mode Typer returns the code that a command ended with instead of leaving by itself.
        code = app(standalone_mode=False) or Exit.DONE
    except TyperException as error:
        # Its usage errors know how to show themselves with the command's usage line; their class is not public.
        show = getattr(error, "show", None)
        if show is None:
            raise
        show()
        code = Exit.USAGE
    except UnicodeEncodeError:
        code = _fail(UsageError("an argument holds bytes that are not UTF-8"), Exit.USAGE)
    except UsageError as error:
        code = _fail(error, Exit.USAGE)
    except BothwaysError as error:
        code = _fail(error, Exit.NO_STACK)
    raise SystemExit(int(code))


def _tolerate_poor_terminals() -> None:
    """A terminal that cannot show a letter gets its escape, not a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _fail(error: Exception, code: Exit) -> Exit:
    err.print(visible(f"bothways: {error}"))
    return code
