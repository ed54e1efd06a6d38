"""Test whether toolkit detects that each rank reports the same epoch, which shows separate worlds."""

from tests.unit.tables import every_row
from toolkit.launch.tracking.worlds import same_epochs

ROWS = {
    "0: Epoch 1/2\n1: Epoch 1/2\n": "Epoch 1/2",
    "0: Epoch [3/20], loss 0.1\n1: Epoch [3/20], loss 0.2\n": "Epoch [3/20",
    "1: train epoch: 7 loss 1\n0: train epoch: 7 loss 2\n": "train epoch: 7",
    "0: Epoch 1/2\n0: Epoch 2/2\n1: started\n": "",
    "0: Epoch 1/2\n1: Epoch 2/2\n": "",
    "Epoch 1/2\nEpoch 1/2\n": "",
    "": "",
}


@every_row("text", ROWS)
def test_an_epoch_that_every_rank_reports(text):
    assert same_epochs(text, 2) == ROWS[text]
    assert same_epochs(text, 3) == ""
    assert same_epochs(text, 1) == ""
