"""What answers imply: exactly, where nobody errs, or as a posterior, where people do."""

from likewise.oracles.beliefs.again import Reask
from likewise.oracles.beliefs.base import Beliefs, Contradiction
from likewise.oracles.beliefs.exact import ExactBeliefs
from likewise.oracles.beliefs.facts import Facts
from likewise.oracles.beliefs.noisy import NoisyBeliefs

__all__ = ["Beliefs", "Contradiction", "ExactBeliefs", "Facts", "NoisyBeliefs", "Reask"]
