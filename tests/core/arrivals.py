"""The ways in which a stream that was accepted ends by itself."""

from threads.core.faults import Arrival

TRANSPORT_ENDS = [
    arrival
    for arrival in Arrival
    if arrival not in (Arrival.STREAMED_ERROR, Arrival.STATUS, Arrival.UNREACHABLE)
]

AFTER_DONE = [end for end in TRANSPORT_ENDS if end is not Arrival.UNREADABLE]
"""What can come after [DONE]: no frame is read any more."""
