"""The jobs of row `prefix-order`: whole paragraphs of SQuAD-it, planned, queued and cut into bundles as ever."""

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from contract.items import Item
from ops.benchmarks.stand import Stand
from ops.benchmarks.synthetic import ORDERS
from ops.local.model import MODEL
from producer.enqueue import enqueue
from producer.study_file import LoadedStudy, read_study
from producer.window import cut_bundles, queue_next
from worker.records import ClaimedJob
from worker.store import JobStore

DATASET = "squad-it-low"
QUEUE = f"openai.{MODEL}"
ANSWER_TOKENS = 2
LEASE_S = 3600.0


def bundles_of_jobs(stand: Stand, squad_it: Path, jobs: int) -> list[list[ClaimedJob]]:
    """About so many jobs, bundled by the dispatcher's own cut and claimed as a worker would."""
    loaded = read_study(_write_study(stand.folder, squad_it))
    loaded = replace(loaded, items={DATASET: some_paragraphs(loaded.items[DATASET], jobs // ORDERS)})
    enqueue(stand.database, loaded)
    store = JobStore(stand.database, worker="benchmark")
    return [store.claim(job_ids) for job_ids in _cut(stand, loaded)]


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


def _cut(stand: Stand, loaded: LoadedStudy) -> list[tuple[int, ...]]:
    """The job ids of each bundle; the one place here that knows how the dispatcher cuts."""
    room = ORDERS * len(loaded.items[DATASET])
    with stand.database.begin() as connection:
        return [bundle.job_ids for bundle in cut_bundles(queue_next(connection, QUEUE, room=room, lease_s=LEASE_S))]


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
