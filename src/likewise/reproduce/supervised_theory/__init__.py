"""The Birth of Self Supervised Learning (``supervised-theory``): figures, and claims that it does
not test."""
