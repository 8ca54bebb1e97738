"""What answers imply."""

from likewise.oracles.beliefs.base import Beliefs, Contradiction
from likewise.oracles.beliefs.exact import ExactBeliefs
from likewise.oracles.beliefs.facts import Facts
from likewise.oracles.beliefs.noisy import NoisyBeliefs, Reask

__all__ = ["Beliefs", "Contradiction", "ExactBeliefs", "Facts", "NoisyBeliefs", "Reask"]
