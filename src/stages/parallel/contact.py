"""Telling a lost rank from a mistake, by the error that a collective raised."""

WORDS = ("gloo", "NCCL", "Connection", "connection", "Timed out", "timed out", "TCPStore")


def lost_contact(error: BaseException) -> bool:
    """Whether another rank, or the way to it, most likely failed first."""
    from torch.distributed import DistError

    if isinstance(error, DistError):
        return True
    return isinstance(error, RuntimeError) and any(word in str(error) for word in WORDS)
