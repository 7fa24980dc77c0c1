"""What `bothways hosts` and `bothways pools` print, for people and for programs."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from sqlalchemy import Engine

from tests.jobs import beat, change

ROOT = Path(__file__).parents[2]
POOLS = {"pools": [{"name": "first", "provider": "gemini", "rpm": 60, "rpd": 100, "api_key_env": "A_KEY"}]}


@pytest.fixture
def stack(database_url: str, broker_url: str, tmp_path: Path) -> dict[str, str]:
    """An environment with a stack and a pools file."""
    (tmp_path / "quotas.yaml").write_text(yaml.safe_dump(POOLS), encoding="utf-8")
    kept = {name: value for name, value in os.environ.items() if not name.startswith("BOTHWAYS_")}
    return kept | {
        "BOTHWAYS_STATE": str(tmp_path / "state"),
        "BOTHWAYS_DATABASE_URL": database_url,
        "BOTHWAYS_BROKER_URL": broker_url,
        "BOTHWAYS_POOLS": str(tmp_path / "quotas.yaml"),
        "COLUMNS": "120",
    }


def bothways(stack: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    """One command."""
    command = [sys.executable, "-m", "ops.cli", *words]
    return subprocess.run(command, cwd=ROOT, env=stack, capture_output=True, text=True, check=True, timeout=60)


def test_hosts_and_pools_are_told_to_people_and_to_programs(stack: dict[str, str], engine: Engine) -> None:
    none = bothways(stack, "hosts")
    beat(engine, "ollama.llama", worker="gpu1.7", slots=2)
    change(
        engine,
        """UPDATE worker_heartbeat SET seen_at = now() + interval '2 min', endpoint = 'gpu1:11434', notes = '["slow"]',
           models = '["llama:8b"]', pace = '{"ollama.llama": 3}'""",
    )

    hosts, pools = bothways(stack, "hosts"), bothways(stack, "pools")
    (host,) = json.loads(bothways(stack, "hosts", "--json").stdout)
    (pool,) = json.loads(bothways(stack, "pools", "--json").stdout)

    assert "no worker was seen in the last hour" in none.stderr
    line = next(line for line in hosts.stdout.splitlines() if "gpu1.7" in line)
    assert line.split()[:2] + line.split()[3:] == ["gpu1.7", "gpu1:11434", "s", "2", "ollama.llama", "40"]
    assert "gpu1:11434 has llama:8b" in hosts.stdout
    assert "gpu1.7: slow" in hosts.stdout
    assert (host["worker"], host["gone"]) == ("gpu1.7", False)
    assert "0 used, 90 left until" in " ".join(pools.stdout.split())
    assert "60 requests" in pools.stdout
    assert (pool["name"], pool["limits"]["rpm"], pool["left_today"]) == ("first", 60, 90)
    assert "A_KEY" not in json.dumps(pool)
