"""A progress listener that records all lines."""

from toolkit.model.progress import Silent


class Heard(Silent):
    def __init__(self):
        self.steps, self.details = [], []

    def step(self, text):
        self.steps.append(text)

    def detail(self, text):
        self.details.append(text)
