"""Benchmarks: what the queue costs, each figure beside a baseline of the same run on the same machine.

    python -m ops.benchmarks [NAME...] [--jobs N] [--json FILE] [--squad-it FILE]

Every benchmark starts its own engines in a temporary folder. See docs/benchmarks.md for what each one measures.
"""
