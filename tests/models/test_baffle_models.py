"""BAFFLE's models: the paper's sizes, what every option does, and that frozen features stay out of the protocol."""

from __future__ import annotations

import copy
import dataclasses
import hashlib
import pickle
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.func import functional_call, vmap

from fedarena.core.errors import UserError
from fedarena.core.registry import find
from fedarena.core.rng import Rng
from fedarena.core.tensors import rows, stack
from fedarena.core.torchvision_import import import_torchvision
from fedarena.federation import rounds as federation
from fedarena.federation.compose import make_defense, parse_defense
from fedarena.models import layers, mobilenet_head
from fedarena.models.cards import layers as layer_options
from fedarena.problem import client_steps as forms
from fedarena.problem.local_training import upload
from fedarena.problem.problem import build
from fedarena.problem.schedule import Schedule
from fedarena.problem.spec import ProblemSpec
from fedarena.problem.task import Batch, Task

CONVOLUTIONAL = pytest.mark.parametrize("name", ["lenet-baffle", "wrn-10-2"])
RANDOM = {"weights": "random", "size": "32"}


def make(name, shape=(3, 32, 32), classes=10, **text):
    card = find("model", name)
    architecture = card.load()(card.parse(text))
    module = architecture.module(shape, classes)
    return module, architecture.init(module, Rng(0).torch())


def images(*shape, seed=1):
    return torch.rand(*shape, generator=Rng(seed).torch())


def logits(name, x, **text):
    module, params = make(name, tuple(x.shape[1:]), **text)
    return functional_call(module, params, (x,))


def count(params):
    return sum(p.numel() for p in params.values())


@pytest.mark.parametrize(
    ("name", "shape", "classes", "options", "parameters"),
    [
        # 16·(25 + 1) + 64·(25·16 + 1) + 10·(64 + 1); the paper: 2.7e4
        ("lenet-baffle", (1, 32, 32), 10, {}, 26_730),
        ("lenet-baffle", (1, 28, 28), 10, {"size": "32"}, 26_730),
        # 32·(75 + 1) + 128·(25·32 + 1) + 100·(128 + 1)
        ("lenet-baffle", (3, 32, 32), 100, {"width": "2"}, 2432 + 102_528 + 12_900),
        # 27·16, then 9·c_in·c_out + 9·c_out² + c_in·c_out a block, then 10·(128 + 1); the paper: 3.0e5
        ("wrn-10-2", (3, 32, 32), 10, {}, 432 + 14_336 + 57_344 + 229_376 + 1290),
        ("wrn-10-2", (3, 32, 32), 10, {"norm": "none"}, 302_778),
        ("mobilenet-head", (3, 32, 32), 10, RANDOM, 12_810),
    ],
)
def test_parameter_counts(name, shape, classes, options, parameters):
    assert count(make(name, shape, classes, **options)[1]) == parameters


@CONVOLUTIONAL
@pytest.mark.parametrize("norm", layer_options.NORMS)
def test_each_norm_can_be_called_by_parameters_mapped_and_pickled(name, norm):
    module, params = make(name, norm=norm)
    x = images(4, 2, 3, 32, 32)
    plain = copy.deepcopy(module)
    plain.load_state_dict(params)
    called = functional_call(pickle.loads(pickle.dumps(module)), params, (x[0],))
    assert called.shape == (2, 10)
    assert torch.equal(called, plain(x[0]))
    assert not any(p.any() for p in module.parameters())
    each = torch.stack([functional_call(module, params, (one,)) for one in x])
    mapped = vmap(lambda one: functional_call(module, params, (one,)))(x)
    assert torch.allclose(mapped, each, atol=1e-5)
    assert not torch.allclose(each[0], each[1], atol=1e-3 * float(each.std()))


OTHERS = {
    "activation": layer_options.ACTIVATIONS,
    "norm": layer_options.NORMS,
    "width": ("1", "2"),
    "size": ("none", "20", "24"),
    "mean": ("0", "0.3"),
    "std": ("1", "0.5"),
    "init": ("default", "xavier-he", "uniform-half"),
}


@pytest.mark.parametrize(
    ("name", "changed"),
    [(n, f.name) for n in ("lenet-baffle", "wrn-10-2") for f in dataclasses.fields(find("model", n).options)],
)
def test_every_option_changes_the_output(name, changed):
    x = images(4, 3, 16, 16)
    outs = [logits(name, x, **{changed: value}) for value in OTHERS[changed]]
    for i, a in enumerate(outs):
        for b in outs[:i]:
            assert (a - b).abs().max() > 1e-3 * a.abs().max()


@CONVOLUTIONAL
def test_batch_normalisation_always_takes_the_batch_s_statistics(name):
    x = images(6, 3, 16, 16)
    for norm, mixes in (("batch", True), ("group", False), ("none", False)):
        module, params = make(name, (3, 16, 16), norm=norm)
        module.train()
        training = functional_call(module, params, (x,))
        module.eval()
        together, alone = functional_call(module, params, (x,)), functional_call(module, params, (x[:3],))
        assert torch.equal(training, together)
        assert torch.allclose(together[:3], alone, atol=1e-5) is not mixes
        assert not list(module.buffers())


def test_a_factor_on_the_pixels_would_do_nothing_to_the_wide_resnet():
    """Why it has no option `std`."""
    x = images(4, 3, 16, 16)
    for norm in ("group", "batch"):
        plain, scaled = logits("wrn-10-2", x, norm=norm), logits("wrn-10-2", 2 * x, norm=norm)
        assert (scaled - plain).abs().max() < 1e-4 * plain.abs().max()


def test_norms_normalise_what_they_say():
    x = 3 + 2 * images(8, 32, 5, 5)
    (batch,), (group,) = layers.norm("batch", 32).values(), layers.norm("group", 32).values()
    z = batch(x)
    assert torch.allclose(z.mean((0, 2, 3)), torch.zeros(32), atol=1e-5)
    assert torch.allclose(z.var((0, 2, 3), unbiased=False), torch.ones(32), atol=1e-3)
    z = group(x).reshape(8, 2, -1)
    assert torch.allclose(z.mean(2), torch.zeros(8, 2), atol=1e-5)
    assert not list(batch.parameters())
    assert not list(group.parameters())
    assert layers.norm("none", 32) == {}
    assert [layers.groups(c) for c in (16, 32, 64, 128)] == [2, 2, 4, 8]


def test_the_names_of_options_are_those_of_layers():
    assert set(layer_options.ACTIVATIONS) == set(layers.ACTIVATIONS)
    x = torch.linspace(-4, 4, 101)
    truth = {
        "hardswish": x * (x + 3).clamp(0, 6) / 6,
        "relu": x.clamp(min=0),
        "selu": 1.0507009873554805 * torch.where(x > 0, x, 1.6732632423543772 * torch.expm1(x)),
    }
    for name, expected in truth.items():
        assert torch.allclose(layers.ACTIVATIONS[name]()(x), expected, atol=1e-5)


def test_lenet_is_its_formula():
    """conv, act, max pool, conv, act, mean over pixels, dense; pooling after the first convolution only."""
    module, p = make("lenet-baffle", (1, 28, 28), size="32", mean="0.1", std="0.5")
    x = images(2, 1, 28, 28)
    h = (F.interpolate(x, (32, 32), mode="bilinear") - 0.1) / 0.5
    h = F.max_pool2d(F.hardswish(F.conv2d(h, p["conv1.weight"], p["conv1.bias"], padding=2)), 2)
    h = F.hardswish(F.conv2d(h, p["conv2.weight"], p["conv2.bias"], padding=2))
    assert h.shape == (2, 64, 16, 16)
    truth = h.mean((2, 3)) @ p["out.weight"].T + p["out.bias"]
    assert torch.allclose(functional_call(module, p, (x,)), truth, atol=1e-6)


def test_wide_resnet_is_its_formula():
    """Pre-activation blocks; the skip starts after the block's first activation."""
    module, p = make("wrn-10-2", (3, 16, 16), norm="group", activation="relu")
    x = images(2, 3, 16, 16)

    def pre(h):
        return F.relu(F.group_norm(h, max(2, h.shape[1] // 16)))

    h = F.conv2d(x, p["conv.weight"], padding=1)
    for i, stride in ((1, 1), (2, 2), (3, 2)):
        a = pre(h)
        h = F.conv2d(a, p[f"block{i}.conv1.weight"], stride=stride, padding=1)
        h = F.conv2d(pre(h), p[f"block{i}.conv2.weight"], padding=1)
        h = h + F.conv2d(a, p[f"block{i}.skip.weight"], stride=stride)
    assert h.shape == (2, 128, 4, 4)
    truth = pre(h).mean((2, 3)) @ p["out.weight"].T + p["out.bias"]
    assert torch.allclose(functional_call(module, p, (x,)), truth, atol=1e-5)


@pytest.mark.parametrize(("name", "smallest"), [("lenet-baffle", 4), ("wrn-10-2", 8), ("mobilenet-head", 32)])
def test_the_smallest_image_works_alone_and_smaller_ones_are_refused(name, smallest):
    options = {"weights": "random"} if name == "mobilenet-head" else {"norm": "batch"}
    x = images(1, 3, smallest, smallest)
    assert logits(name, x, **options).isfinite().all()
    with pytest.raises(UserError, match=rf"{name}.*{smallest}x{smallest}"):
        make(name, (3, smallest, smallest - 1), **options)
    with pytest.raises(UserError, match="size"):
        find("model", name).parse({"size": str(smallest - 1)})


@pytest.mark.parametrize("epochs", [0, 1])
@pytest.mark.parametrize("name", ["lenet-baffle", "wrn-10-2", "mobilenet-head"])
def test_the_harness_trains_what_the_plain_client_does(name, epochs):
    options = RANDOM if name == "mobilenet-head" else {"size": "8"}
    module, params = make(name, (1, 8, 8), 3, **options)
    task = Task(
        module,
        input_shape=(1, 8, 8),
        n_classes=3,
        sizes=(4, 4),
        schedule=Schedule(batch_size=2, local_epochs=epochs, lr=0.05),
    )
    g, steps = Rng(2).torch(), task.schedule.steps(4)
    batches = [
        Batch(torch.rand(steps, 2, 1, 8, 8, generator=g), torch.randint(0, 3, (steps, 2), generator=g))
        for _ in range(2)
    ]
    truth = stack([upload(task.loss, params, b, task.schedule) for b in batches])
    got = forms.uploads(task, task.loss, params, batches)
    assert list(got) == list(params)
    assert float(rows(truth).norm()) > 0
    assert float((rows(got) - rows(truth)).norm() / rows(truth).norm()) < 1e-4


@pytest.mark.parametrize("name", ["lenet-baffle", "wrn-10-2"])
def test_fedavg_trains_it(name):
    model = find("model", name).parse({})
    schedule = Schedule(rounds=1, batch_size=32, local_epochs=1, local_samples=128)
    spec = ProblemSpec("digits", model=name, partition="iid", clients=2, model_options=model, schedule=schedule)
    problem = build(spec, 0)
    run = federation.run(make_defense(parse_defense("fedavg"), problem.task), problem, Rng(0), watch=())
    before = problem.evaluate(problem.init)[1]
    assert run.diverged_at is None
    assert run.curve[-1].loss < before


# --- mobilenet-head ---------------------------------------------------------------------------------------------


def test_only_the_head_is_trained_and_nothing_frozen_shows():
    module, params = make("mobilenet-head", **RANDOM)
    assert list(params) == ["out.weight", "out.bias"]
    assert list(params) == [n for n, _ in module.named_parameters()]
    assert [type(m) for m in module.modules() if list(m.children()) == [] and list(m.parameters())] == [nn.Linear]
    assert [
        name for name, _ in Task(module, input_shape=(3, 32, 32), n_classes=10, sizes=(1,), schedule=Schedule()).layers
    ] == ["out"]
    assert not list(module.buffers())
    assert not module.state_dict().keys() - set(params)


def test_features_are_torchvisions_and_in_evaluation():
    module, params = make("mobilenet-head", **RANDOM)
    (net,) = module.features._held
    assert sum(p.numel() for p in net.parameters()) == 2_223_872
    assert not any(p.requires_grad for p in net.parameters())
    x = images(3, 3, 32, 32)
    module.train()
    normal = (x - torch.tensor(mobilenet_head.MEAN).view(3, 1, 1)) / torch.tensor(mobilenet_head.STD).view(3, 1, 1)
    whole = import_torchvision().models.mobilenet_v2()
    whole.features.load_state_dict(net.state_dict())
    whole.classifier[1] = nn.Linear(1280, 10)
    whole.classifier[1].load_state_dict({"weight": params["out.weight"], "bias": params["out.bias"]})
    assert torch.allclose(functional_call(module, params, (x,)), whole.eval()(normal), atol=1e-4)
    # Stored statistics: no sample depends on its neighbours, and none is learned from them.
    assert torch.allclose(
        functional_call(module, params, (x[:1],)), functional_call(module, params, (x,))[:1], atol=1e-4
    )
    assert not any(b.running_mean.any() for b in net.modules() if isinstance(b, nn.BatchNorm2d))


def test_random_features_are_the_same_for_everybody_and_no_global_draw():
    before = torch.random.get_rng_state()
    (a,), (b,) = (make("mobilenet-head", **RANDOM)[0].features._held for _ in range(2))
    assert torch.equal(before, torch.random.get_rng_state())
    assert all(torch.equal(p, q) for p, q in zip(a.state_dict().values(), b.state_dict().values(), strict=True))
    x = images(2, 3, 32, 32)
    assert a(x).std(0).mean() > 0.01  # neither vanishing nor constant


def test_features_follow_the_module_s_device_and_type_and_its_copies():
    module, params = make("mobilenet-head", **RANDOM)
    x = images(2, 3, 32, 32)
    single = functional_call(module, params, (x,))
    double = copy.deepcopy(module).double()
    assert next(double.features._held[0].parameters()).dtype == torch.float64
    assert next(module.features._held[0].parameters()).dtype == torch.float32
    exact = functional_call(double, {n: p.double() for n, p in params.items()}, (x.double(),))
    assert exact.dtype == torch.float64
    assert torch.allclose(exact.float(), single, atol=1e-3)
    mixed = functional_call(module, {n: p.double() for n, p in params.items()}, (x.double(),))
    assert mixed.dtype == torch.float64
    assert torch.equal(functional_call(pickle.loads(pickle.dumps(module)), params, (x,)), single)


def test_a_fresh_process_can_unpickle_it(tmp_path):
    """Worker processes get the module before anything in them has imported torchvision."""
    module, params = make("mobilenet-head", **RANDOM)
    x = images(2, 3, 32, 32)
    (tmp_path / "module").write_bytes(pickle.dumps((module, params, x)))
    code = (
        "import pickle, sys; from torch.func import functional_call as call\n"
        "module, params, x = pickle.load(open(sys.argv[1], 'rb'))\n"
        "print(call(module, params, (x,)).double().sum().item())"
    )
    done = subprocess.run([sys.executable, "-c", code, tmp_path / "module"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    truth = float(functional_call(module, params, (x,)).double().sum())
    assert float(done.stdout) == pytest.approx(truth, rel=1e-4)


def test_one_channel_is_three_equal_ones_and_two_are_refused():
    grey = images(2, 1, 32, 32)
    assert torch.equal(
        logits("mobilenet-head", grey, **RANDOM), logits("mobilenet-head", grey.repeat(1, 3, 1, 1), **RANDOM)
    )
    with pytest.raises(UserError, match="1 or 3 channels; inputs have 2"):
        make("mobilenet-head", (2, 32, 32), **RANDOM)


@pytest.fixture
def nowhere(tmp_path, monkeypatch):
    """No weights in any folder that is searched; gives the folder of data files."""
    data = tmp_path / "data"
    data.mkdir()
    monkeypatch.setenv("FEDARENA_DATA", str(data))
    monkeypatch.setenv("FEDARENA_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "torch"))
    monkeypatch.setattr(torch.hub, "_hub_dir", None)
    return data


@pytest.fixture
def state(tmp_path):
    """A state dict of the whole model, with weights of its own, in a file named by its checksum."""
    with torch.random.fork_rng():
        torch.manual_seed(7)
        whole = import_torchvision().models.mobilenet_v2()
    path = tmp_path / "mine.pth"
    torch.save(whole.state_dict(), path)
    return path


def same(module, path):
    saved = torch.load(path, weights_only=True)
    return all(torch.equal(v, saved[f"features.{k}"]) for k, v in module.features._held[0].state_dict().items())


def test_random_features_are_never_taken_for_pretrained_ones(nowhere):
    with pytest.raises(UserError, match=r"option 'weights' is pretrained.*absent.*model\.weights=random") as refused:
        make("mobilenet-head")
    assert str(nowhere) in str(refused.value)
    assert "torch" in str(refused.value)


@pytest.mark.parametrize("place", ["data", "torch/hub/checkpoints"])
def test_pretrained_weights_are_found_and_held_to_their_checksum(nowhere, state, place, tmp_path, monkeypatch):
    folder = tmp_path / place
    folder.mkdir(parents=True, exist_ok=True)
    monkeypatch.setattr(
        mobilenet_head, "STANDARD", f"mobilenet_v2-{hashlib.sha256(state.read_bytes()).hexdigest()[:8]}.pth"
    )
    (folder / mobilenet_head.STANDARD).write_bytes(state.read_bytes())
    module, _ = make("mobilenet-head")
    assert same(module, state)
    assert not same(make("mobilenet-head", **RANDOM)[0], state)
    wrong = folder / "mobilenet_v2-00000000.pth"
    wrong.write_bytes(state.read_bytes())
    monkeypatch.setattr(mobilenet_head, "STANDARD", wrong.name)
    with pytest.raises(UserError, match="expected one that begins with 00000000"):
        make("mobilenet-head")


def test_weights_may_be_any_state_dict_of_the_model(nowhere, state):
    assert same(make("mobilenet-head", weights=str(state))[0], state)
    with pytest.raises(UserError, match=r"option 'weights' is 'here\.pth'"):
        make("mobilenet-head", weights="here.pth")


@pytest.mark.parametrize("content", [b"no weights", {"features.0.0.weight": torch.zeros(1)}, [1], {}])
def test_other_files_are_refused_in_one_line(nowhere, content):
    path = Path(nowhere) / "other.pth"
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        torch.save(content, path)
    with pytest.raises(UserError, match="no state dict of torchvision") as refused:
        make("mobilenet-head", weights=str(path))
    assert "\n" not in str(refused.value)


def test_options_of_the_head_act():
    x = images(2, 3, 40, 40)
    usual = logits("mobilenet-head", x, weights="random")
    for change in ({"size": "64"}, {"init": "uniform-half"}):
        assert (logits("mobilenet-head", x, weights="random", **change) - usual).abs().max() > 1e-3
