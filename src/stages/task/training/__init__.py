"""Training of draft heads: the corpus, the target's cached features, losses and the loop."""
