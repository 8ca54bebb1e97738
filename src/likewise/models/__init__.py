"""What learns: encoders, projectors and predictors, momentum teacher, queue.

>>> import torch
>>> encoder, projector = build_encoder("tiny", seed=0), MLP([128, 128, 64])
>>> projector(encoder(torch.zeros(4, 3, 32, 32))).shape
torch.Size([4, 64])
"""

from likewise.models.batch_norm import BatchNormOverRanks, convert_batch_norm
from likewise.models.encoder import Encoder, build_encoder, load_encoder
from likewise.models.mlp import MLP
from likewise.models.queue import Nearest, Queue
from likewise.models.teacher import MomentumTeacher, momentum_schedule

__all__ = [
    "MLP",
    "BatchNormOverRanks",
    "Encoder",
    "MomentumTeacher",
    "Nearest",
    "Queue",
    "build_encoder",
    "convert_batch_norm",
    "load_encoder",
    "momentum_schedule",
]
