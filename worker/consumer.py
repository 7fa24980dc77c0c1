"""Celery's consumer, made to outlive a broker that dies while the worker has both free slots and bundles in hand."""

from contextlib import suppress
from typing import Any

from celery.utils.threads import bound_open_broker_sockets  # type: ignore[attr-defined]  # newer than its stubs
from celery.worker.consumer import Consumer

LONGEST_READ_S = 5.0


class SteadyConsumer(Consumer):
    """Closes the channel to a lost broker itself.

    A channel that waits for a message reads on when it is closed, which fails, and so it remains half open. Celery 5.7
    then takes its connection away and closes it again, and an AttributeError ends the worker.
    """

    def on_connection_error_after_connected(self, exc: Exception) -> None:
        """Close it until that no longer fails, while its connection is still there; then what Celery does."""
        consumer: Any = self.task_consumer  # type: ignore[attr-defined]  # not in its stubs
        channel = None if consumer is None else consumer.channel
        if self.connection is not None and channel is not None:
            lost = self.connection.connection_errors + self.connection.channel_errors
            bound_open_broker_sockets(self.connection, LONGEST_READ_S)
            for _ in range(2):
                with suppress(*lost):
                    channel.close()
        super().on_connection_error_after_connected(exc)
