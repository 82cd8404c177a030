"""Few loss differences tell a digit, where the model has chosen what lies behind them."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from helpers import malicious

from fedarena.goals.metrics.reconstruction import reconstruction_metrics

SMALL = {"widths": "12,10"}
FEW = {"directions": "8"}
ONE = {"victims": "1"}
LUCKY = {**ONE, "draws": "5"}
HELD = malicious.challenge("chosen-features", "baffle", LUCKY, FEW, batch_size=1, model_options=SMALL)
SEEN = HELD.view.observations[0]


def test_eight_differences_bring_back_eight_features() -> None:
    """The error that is left lies outside of the leading eight principal components of the attacker's own samples."""
    assert HELD.view.population is not None
    own = HELD.view.population.x.flatten(1).double()
    leading = torch.linalg.svd(own - own.mean(0), full_matrices=False).Vh[:8]
    guess = malicious.answer("chosen-features", HELD, LUCKY)
    for one, x in zip(guess, malicious.truths(HELD), strict=True):
        off = one.images.flatten(1).double() - x.double()
        assert (off @ leading.T).norm() < 0.1 * off.norm()


def test_eight_chosen_numbers_tell_more_than_eight_random_ones() -> None:
    found = {}
    for attack in ("affine-model", "chosen-features"):
        challenge = malicious.challenge(attack, "baffle", ONE, FEW, batch_size=1, model_options=SMALL)
        found[attack] = reconstruction_metrics(malicious.answer(attack, challenge, ONE), challenge.answers)
    assert found["chosen-features"]["psnr"] > found["affine-model"]["psnr"] + 1
    assert found["chosen-features"]["label_accuracy"] == 1


def test_all_features_bring_a_digit_back_without_a_defense() -> None:
    wide = {"widths": "64"}
    challenge = malicious.challenge("chosen-features", options=ONE, batch_size=1, model_options=wide)
    assert reconstruction_metrics(malicious.answer("chosen-features", challenge, ONE), challenge.answers)["psnr"] > 40


def test_only_the_output_layer_has_a_gradient() -> None:
    """As many entries of it depend on the sample as there are features, for each class."""
    seen = malicious.challenge("chosen-features", batch_size=1, model_options=SMALL).view.observations[0]
    y = F.one_hot(torch.tensor([3]), 10).float()
    one, other = (seen.simulate(x, y) for x in torch.rand(2, 1, 1, 8, 8, generator=torch.Generator().manual_seed(0)))
    changed = {name for name in one if not torch.allclose(one[name], other[name], atol=1e-6)}
    assert changed == {"out.weight"}
    assert not one["fc1.weight"].any()


def test_without_a_prior_less_of_a_digit_is_filled_in() -> None:
    psnr = {}
    for prior in ("none", "population"):
        guess = malicious.answer("chosen-features", HELD, {**ONE, "prior": prior})
        psnr[prior] = reconstruction_metrics(guess, HELD.answers)["psnr"]
    assert psnr["none"] < psnr["population"] - 1


def test_convolutions_are_no_result() -> None:
    assert "not dense" in malicious.reason("chosen-features", batch_size=1, model="lenet-dlg")


def test_layers_without_biases_are_no_result() -> None:
    assert "no biases" in malicious.reason("chosen-features", batch_size=1, model_options={"bias": "false"})


def test_features_are_not_sent_through_a_bottleneck() -> None:
    options = {"widths": "32", "bottleneck": "16"}
    assert "bottleneck" in malicious.reason("chosen-features", batch_size=1, model_options=options)
