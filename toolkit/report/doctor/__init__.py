"""Format the doctor's result as a page or as JSON."""
