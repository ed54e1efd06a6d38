"""Choose a partition of a site for a job, and draft and check site profiles.

``knowledge/sites.py`` reads the profiles.
"""
