"""The cluster's metadata: records, the image they add up to, and the delta between two images. Brokers may import it.

`frame.py` reads and writes records, `delta.py` replays them, `image.py` is the immutable result; `loader.py` follows
the log and publishes both. `features.py` has the feature levels, `canonical.py` the state hash, `check.py` the
invariants of an image. No I/O but the loader's timer. Begin with `image.py`.
"""
