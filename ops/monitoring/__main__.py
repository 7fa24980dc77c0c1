"""Flower on our Celery application: `python -m ops.monitoring --port N`, until SIGTERM.

The password stands in the file that --password-file names, else in BOTHWAYS_FLOWER_PASSWORD.

The application is the one that workers and dispatcher use: Redis redelivers by the shortest visibility time-out of all
who listen, so a monitor with a shorter one would double the work.
"""

import argparse
import os
from collections.abc import Mapping
from pathlib import Path

from celery import Celery

from contract.broker import create_celery
from contract.errors import BothwaysError, UsageError
from contract.settings import load_settings
from ops.cli.awaiting import await_stack
from ops.cli.connect import open_broker
from ops.monitoring.flower import LOOPBACK, flower_environment, flower_options

PASSWORD = "BOTHWAYS_FLOWER_PASSWORD"  # noqa: S105 - the variable's name


def main() -> None:
    """Read the command line, the password and the settings; serve. What goes wrong is told in one line."""
    parser = argparse.ArgumentParser(prog="ops.monitoring", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--address", default=LOOPBACK)
    parser.add_argument("--password-file", type=Path)
    parser.add_argument("--await", dest="await_s", metavar="SECONDS", type=float, default=0.0)
    options = parser.parse_args()
    try:
        environment = flower_environment(os.environ, _password(options.password_file))
        settings = load_settings()
        await_stack(lambda: open_broker(settings).close(), options.await_s)
        app = create_celery(settings.broker_url.get_secret_value())
        serve(app, port=options.port, address=options.address, environment=environment)
    except (BothwaysError, OSError) as error:
        raise SystemExit(str(error)) from None


def _password(file: Path | None) -> str:
    if file is not None:
        return file.read_text(encoding="utf-8").strip()
    if not os.environ.get(PASSWORD):
        raise UsageError(f"Flower needs a password: --password-file, or {PASSWORD}")
    return os.environ[PASSWORD]


def serve(app: Celery, *, port: int, address: str, environment: Mapping[str, str]) -> None:
    """Run Flower's own command on `app` in this process, which takes on this environment."""
    os.environ.clear()
    os.environ.update(environment)

    from celery.bin.base import CLIContext
    from celery.bin.celery import celery
    from flower.command import flower

    # Not through celery's own main: it would take another application or broker from the variables APP and BROKER_URL.
    with celery.context_class(celery, obj=CLIContext(app=app, no_color=True, workdir=None)) as context:
        flower.main(args=flower_options(port, address), parent=context, standalone_mode=False)


if __name__ == "__main__":
    main()
