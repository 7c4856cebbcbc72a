"""DraftMesh: lossless speculative decoding over any draft, feed-forward and parallel plan."""

__version__ = "0.1.0"
