"""HTTP requests with limits on time, bytes and redirects."""
