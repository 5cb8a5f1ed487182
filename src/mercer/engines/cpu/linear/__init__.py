"""Linear machines through the weights of features."""
