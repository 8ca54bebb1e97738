"""Who is alike: the similarity graph.

>>> import torch
>>> graph = Graph.from_edges(torch.tensor([0]), torch.tensor([2]), n=3)
>>> (graph @ torch.eye(3)).int().tolist()
[[0, 0, 1], [0, 0, 0], [1, 0, 0]]
"""

from likewise.graph.base import Graph
from likewise.graph.pairs import Pairs

__all__ = ["Graph", "Pairs"]
