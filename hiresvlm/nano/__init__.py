"""A small vision-language model trained from scratch by the code of this package."""
