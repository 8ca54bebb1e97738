"""A number on its way to the host, while the device goes on."""

from __future__ import annotations

import torch
from torch import Tensor


class Readback:
    """Starts to copy a scalar to the host; ``float`` waits for this copy alone.

    A plain ``float(tensor)`` waits for all that was given to a GPU before it. Started in the
    middle of the work, the copy is done by the time that its number is asked for.

    >>> float(Readback(torch.tensor(2.5)))
    2.5
    """

    def __init__(self, number: Tensor) -> None:
        self._number = number.detach().to("cpu", non_blocking=True)
        self._done = None
        if number.is_cuda:
            self._done = torch.cuda.current_stream(number.device).record_event()

    def __float__(self) -> float:
        if self._done is not None:
            self._done.synchronize()
        return float(self._number)
