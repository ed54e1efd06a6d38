"""The command ``toolkit adapt``, which changes the text of a training script so that it runs on several
ranks.
"""
