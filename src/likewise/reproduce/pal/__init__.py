"""Active Self-Supervised Learning (``pal``): figures of the controlled experiments."""
