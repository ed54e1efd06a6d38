"""Find another line to which the root line (the first line that reports the failure) refers, such as the
error before an abort.
"""
