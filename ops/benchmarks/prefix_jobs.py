"""The jobs of row `prefix-order`: whole paragraphs of SQuAD-it, planned, queued and cut into bundles as ever."""

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml
from kombu import Queue

from contract.items import Item
from ops.benchmarks.stand import Stand, register_workers
from ops.benchmarks.synthetic import ORDERS
from ops.local.model import MODEL
from producer.dispatch import Dispatcher
from producer.enqueue import enqueue
from producer.study_file import read_study
from worker.records import ClaimedJob
from worker.store import JobStore

DATASET = "squad-it-low"
QUEUE = f"openai.{MODEL}"
ANSWER_TOKENS = 2


def bundles_of_jobs(stand: Stand, squad_it: Path, jobs: int, *, slots: int) -> list[list[ClaimedJob]]:
    """About so many jobs, in the bundles that the dispatcher makes of them, claimed as a worker would."""
    loaded = read_study(_write_study(stand.folder, squad_it))
    loaded = replace(loaded, items={DATASET: some_paragraphs(loaded.items[DATASET], jobs // ORDERS)})
    enqueue(stand.database, loaded)
    store = JobStore(stand.database, worker="benchmark")
    return [store.claim(job_ids) for job_ids in _cut(stand, slots)]


def some_paragraphs(items: list[Item], at_least: int) -> list[Item]:
    """All items of paragraphs drawn at random, as many paragraphs as give so many items; in the order of the file."""
    sizes: dict[str, int] = {}
    for item in items:
        sizes[item.cluster] = sizes.get(item.cluster, 0) + 1
    drawn = list(sizes)
    random.Random(1).shuffle(drawn)
    chosen: set[str] = set()
    found = 0
    for cluster in drawn:
        if found >= at_least:
            break
        chosen.add(cluster)
        found += sizes[cluster]
    return [item for item in items if item.cluster in chosen]


def _cut(stand: Stand, slots: int) -> list[list[int]]:
    """The job ids of each bundle, as the dispatcher publishes them for so many slots, in the order of the queue."""
    register_workers(stand.database, workers=1, slots=slots)
    with stand.app() as app:
        Dispatcher(stand.database, app, stand.broker).tick()
        with app.connection_for_read() as connection, connection.channel() as channel:
            messages = list(iter(Queue(QUEUE, channel=channel).get, None))
    return [message.payload[1]["job_ids"] for message in messages]


def _write_study(folder: Path, squad_it: Path) -> Path:
    study: dict[str, Any] = {
        "study": "prefix-order",
        "datasets": [
            {
                "name": DATASET,
                "loader": "squad_it",
                "path": str(squad_it.expanduser().resolve()),
                "stand_ins": {"seed": 1},
                "prompt": "two-choice-low",
            }
        ],
        "models": [{"name": MODEL, "provider": "openai", "model": MODEL, "timeout_s": 600}],
        "formats": [{"format": "closed", "sampling": {"max_tokens": ANSWER_TOKENS, "seed": 1}}],
    }
    path = folder / "prefix-order.yaml"
    path.write_text(yaml.safe_dump(study, sort_keys=False, allow_unicode=True), encoding="utf-8")
    return path
