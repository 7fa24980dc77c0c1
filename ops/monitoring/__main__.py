"""Flower on our Celery application: `python -m ops.monitoring --port N --password-file FILE`, until SIGTERM.

The application is the one that workers and dispatcher use: Redis redelivers by the shortest visibility time-out of all
who listen, so a monitor with a shorter one would double the work.
"""

import argparse
import os
from pathlib import Path

from celery import Celery

from contract.broker import create_celery
from contract.errors import BothwaysError
from contract.settings import load_settings
from ops.monitoring.flower import flower_environment, flower_options


def main() -> None:
    """Read the command line, the password and the settings; serve. What goes wrong is told in one line."""
    parser = argparse.ArgumentParser(prog="ops.monitoring", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--password-file", type=Path, required=True)
    options = parser.parse_args()
    try:
        password = options.password_file.read_text(encoding="utf-8").strip()
        app = create_celery(load_settings().broker_url.get_secret_value())
        serve(app, port=options.port, password=password)
    except (BothwaysError, OSError) as error:
        raise SystemExit(str(error)) from None


def serve(app: Celery, *, port: int, password: str) -> None:
    """Run Flower's own command on `app` in this process."""
    environment = flower_environment(os.environ, password)
    os.environ.clear()
    os.environ.update(environment)

    from celery.bin.base import CLIContext
    from celery.bin.celery import celery
    from flower.command import flower

    # Not through celery's own main: it would take another application or broker from the variables APP and BROKER_URL.
    with celery.context_class(celery, obj=CLIContext(app=app, no_color=True, workdir=None)) as context:
        flower.main(args=flower_options(port), parent=context, standalone_mode=False)


if __name__ == "__main__":
    main()
