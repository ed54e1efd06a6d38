"""Plan a launch in each launch mode: command words, variables and mounts, with the additions of a site
profile.
"""
