"""The broker: the names that producer and worker share, and the Celery settings that keep a bundle from running twice.

A message carries job ids and nothing else; it may be lost or doubled without harm.
"""

from celery import Celery

from contract.models import MAX_CALL_S
from contract.study import MAX_BUDGET_S

EVALUATE = "bothways.evaluate"
"""The one task: evaluate the jobs of a bundle."""

MARKER_KEY = "bothways:marker"
"""A key that only the dispatcher sets: gone means that the broker was emptied or replaced."""

IDLE_QUEUE = "bothways.idle"
"""What a worker listens to before it has found queues to serve; nobody publishes to it."""

_KEY_PREFIX = "bothways:"


def list_key(queue: str) -> str:
    """The broker's list that holds the messages of `queue`."""
    return _KEY_PREFIX + queue


def visibility_timeout_s() -> int:
    """Longer than any bundle can take: its time budget, one call, and a minute.

    Redis redelivers what was not acknowledged by then, and nothing renews the timer while a worker is busy.
    """
    return MAX_BUDGET_S + MAX_CALL_S + 60


def create_celery(broker_url: str) -> Celery:
    """The Celery application of both sides: late acknowledgement, JSON only, no results, no countdowns."""
    app = Celery("bothways", broker=broker_url, set_as_current=False)
    app.conf.update(
        # Named twice more because a CELERY_BROKER_URL in the environment would win over the address given above.
        broker_read_url=broker_url,
        broker_write_url=broker_url,
        task_ignore_result=True,
        task_acks_late=True,
        task_reject_on_worker_lost=True,
        task_serializer="json",
        accept_content=["json"],
        task_default_queue=IDLE_QUEUE,
        worker_prefetch_multiplier=1,
        # What a worker holds is bounded by its number of requests in hand, not by what came over one connection: after
        # the broker was away that would begin again at nothing, while the requests of before are still being worked at.
        worker_disable_prefetch=True,
        worker_disable_rate_limits=True,
        worker_eta_task_limit=100,
        worker_hijack_root_logger=False,
        broker_connection_retry_on_startup=True,
        broker_connection_max_retries=None,
        broker_transport_options={
            "visibility_timeout": visibility_timeout_s(),
            "unacked_restore_interval": 10,
            "unacked_restore_throttle": 1,
            "queue_order_strategy": "round_robin",
            "max_connections": 64,
            "health_check_interval": 10,
            "socket_timeout": 30,
            "socket_connect_timeout": 5,
            "socket_keepalive": True,
            "global_keyprefix": _KEY_PREFIX,
        },
    )
    return app
