"""The small instruct model behind an OpenAI-compatible server: `python -m ops.local.llm --port N --model FILE ...`.

Serves until SIGTERM, whose default action ends the process at once: there is nothing to save. It says nothing itself;
llama.cpp writes warnings and errors to stderr, which the stack turns into a log file.
Nothing of ours is imported: it is started by its path, from whatever folder the user is in.
"""

import argparse
import signal

import xllamacpp


def parameters(*, model: str, alias: str, address: str, port: int, slots: int, context: int) -> xllamacpp.CommonParams:
    """The server's parameters: `slots` requests at a time, `context` tokens for each of them."""
    params = xllamacpp.CommonParams()
    params.model.path = model
    params.model_alias = {alias}
    params.hostnames = [address]
    params.port = port
    params.n_parallel = slots
    params.n_ctx = slots * context  # llama.cpp divides the total among the slots
    params.verbosity = 2  # warnings; 3 writes six lines for every request
    params.ui = False
    params.endpoint_slots = False
    # A slot keeps the prompt it saw last: jobs of one bundle share their beginning. The cache beyond that, 8 GiB of
    # memory by default, stays off.
    params.cache_prompt = True
    params.cache_ram_mib = 0
    return params


def main() -> None:
    """Read the command line, load the model, serve."""
    parser = argparse.ArgumentParser(prog="ops.local.llm", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--model", required=True, help="a GGUF file")
    parser.add_argument("--alias", required=True, help="the name that requests call the model by")
    parser.add_argument("--address", default="127.0.0.1")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--slots", type=int, default=4, help="requests answered at a time")
    parser.add_argument("--context", type=int, default=2048, help="tokens for each slot")
    server = xllamacpp.Server(parameters(**vars(parser.parse_args())))
    while server:  # the reference keeps it alive
        signal.pause()


if __name__ == "__main__":
    main()
