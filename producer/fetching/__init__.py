"""Data files from where they live: an address in, a file in the cache out, kept and checked by its hash.

Nothing here draws or reads a study; `producer.data_files` asks, and who shows progress is told by a `Watch`.
"""
