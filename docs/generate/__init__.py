"""What of the documentation is made from the code: reference pages, manual pages, shell completion."""
