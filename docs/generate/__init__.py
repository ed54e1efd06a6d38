"""Make the documentation that follows from the code: reference pages, manual pages, shell completion."""
