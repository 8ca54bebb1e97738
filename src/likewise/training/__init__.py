"""Training an encoder: recipes, batches, and the loop on Lightning's Trainer."""

from likewise.training.learner import Learner
from likewise.training.machine import Machine
from likewise.training.recipe import Recipe
from likewise.training.recipes import RECIPES, recipe

__all__ = ["RECIPES", "Learner", "Machine", "Recipe", "recipe"]
