"""Facts in, predictions and findings out: pure, and explained by the line that each judgement rests on."""
