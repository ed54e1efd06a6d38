"""What trainers read: files of each kind, views of them, and how samples are dealt out to ranks."""
