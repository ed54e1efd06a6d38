"""The pipeline of a job: settings, image, facts, launch, script, submission; nothing is printed here."""
