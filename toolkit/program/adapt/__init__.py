"""The command ``toolkit adapt``, which changes the text of a training script so that several ranks train one
model together.
"""
