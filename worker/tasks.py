"""The one Celery task."""

from celery import Celery

from contract.broker import EVALUATE
from worker.evaluate import Evaluator


def register(app: Celery, evaluator: Evaluator) -> None:
    """Give `app` the task that evaluates a bundle; its return value is the summary that monitors show."""

    @app.task(name=EVALUATE)
    def evaluate(job_ids: list[int]) -> str:
        return evaluator.evaluate(job_ids)
