"""Data sets of third parties: ranges of samples, scales that contradict them, and layouts of arrays."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedarena.core import registry
from fedarena.core.errors import UserError
from fedarena.core.registry import find
from fedarena.datasets.dataset import Dataset, Provenance, load_from
from fedarena.problem import problem as problems
from fedarena.problem.spec import ProblemSpec

Array = np.ndarray[Any, Any]

PIXELS = np.random.default_rng(5).integers(0, 256, (12, 1, 4, 4)).astype(np.uint8)
PIXELS[0, 0, 0, 0], PIXELS[0, 0, 0, 1] = 0, 255
UNIT = PIXELS.astype(np.float32) / np.float32(255)
LABELS = np.arange(12) % 2


def toy(x: Any = PIXELS, scale: float = 255.0, y: Any = LABELS, **more: Any) -> Dataset:
    where = Provenance("made here", None, None, False)
    parts = {"x_train": x, "y_train": y, "x_test": x, "y_test": y} | more
    return Dataset(name="toy", scale=scale, n_classes=2, provenance=where, **parts)


def built(data: Dataset, monkeypatch: pytest.MonkeyPatch) -> problems.Problem:
    """The problem of an MLP on these data."""
    spec = ProblemSpec("digits", model="mlp", partition="iid", clients=2, model_options=find("model", "mlp").parse({}))
    cards = {**spec.cards()}

    class Card:
        def load(self) -> Callable[[Path | None], Dataset]:
            return lambda folder: data

    monkeypatch.setattr(ProblemSpec, "cards", lambda self: {**cards, "dataset": Card()})
    return problems.build(spec, 0)


@pytest.mark.parametrize(
    ("x", "scale", "words"),
    [
        (2 * UNIT - 1, 1.0, "x_train holds values from -1 to 1, expected 0 to 1"),
        ((UNIT - np.float32(0.5)) / np.float32(0.25), 1.0, "x_train holds values from -2 to 2, expected 0 to 1"),
        (255 * UNIT, 1.0, "x_train holds values from 0 to 255, expected 0 to 1"),
        (PIXELS, 1.0, "x_train holds values from 0 to 255, expected 0 to 1"),
        (UNIT, 255.0, "x_train and x_test hold values up to 1, but scale is 255, expected the value that means 1.0"),
        (PIXELS // 128, 255.0, "hold values up to 1, but scale is 255, expected the value that means 1.0, such as 1"),
        (UNIT, np.inf, "scale is inf, expected a number above 0"),
        (UNIT, np.nan, "scale is nan, expected a number above 0"),
    ],
)
def test_images_that_contradict_their_scale_are_refused(x: Array, scale: float, words: str) -> None:
    with pytest.raises(UserError) as told:
        toy(x, scale)
    assert str(told.value).startswith("data set 'toy': ")
    assert words in str(told.value)
    assert "\n" not in str(told.value)


@pytest.mark.parametrize(("x", "scale"), [(UNIT, 1.0), (PIXELS, 255.0), (PIXELS // 16, 16.0), (PIXELS // 128, 1.0)])
def test_images_within_their_scale_raise_no_warning(x: Array, scale: float) -> None:
    assert toy(x, scale).warnings == ()


@pytest.mark.parametrize(
    ("x", "scale", "largest"), [(PIXELS // 16, 255.0, "15"), (UNIT / np.float32(255), 1.0, "0.00")]
)
def test_dark_images_carry_a_warning_into_the_problem(
    x: Array, scale: float, largest: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (told,) = built(toy(x, scale), monkeypatch).warnings
    assert told.startswith(f"data set toy: no value exceeds {largest}")
    assert told.endswith(f", but scale is {scale:g}")


@pytest.mark.parametrize("name", ["digits", "breast-cancer", "diabetes"])
def test_embedded_data_have_no_warning(name: str) -> None:
    assert registry.find("dataset", name).load()(None).warnings == ()


@pytest.mark.parametrize(
    "name", ["mnist", "fashion-mnist", "kmnist", "usps", "cifar10", "cifar100", "olivetti", "lfw", "utkface"]
)
def test_files_of_shipped_data_have_no_warning(name: str, real_data: Path) -> None:
    try:
        data = registry.find("dataset", name).load()(real_data)
    except UserError as error:
        pytest.skip(str(error))
    assert data.warnings == ()


def mapped(folder: Path) -> Array:
    """The pixels as a memory map that cannot be written to."""
    np.save(folder / "x.npy", UNIT)
    return np.load(folder / "x.npy", mmap_mode="r")


LAYOUTS: dict[str, Callable[[Path], Any]] = {
    "reversed": lambda folder: np.ascontiguousarray(UNIT[:, :, ::-1])[:, :, ::-1],
    "big-endian": lambda folder: UNIT.astype(">f4"),
    "Fortran": lambda folder: np.asfortranarray(UNIT),
    "strided": lambda folder: np.repeat(UNIT, 2, axis=0)[::2],
    "mapped": mapped,
    "list": lambda folder: list(UNIT),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_of_samples_gives_the_same_problem(
    layout: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        problem = built(toy(LAYOUTS[layout](tmp_path), 1.0), monkeypatch)
    assert np.array_equal(problem.x.numpy(), UNIT)
    assert np.array_equal(problem.x_test.numpy(), UNIT)


@pytest.mark.parametrize("y", [LABELS[::-1][::-1], LABELS.astype(">i8"), LABELS.tolist()])
def test_every_layout_of_labels_and_facts_is_read(y: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    bright = np.arange(12, dtype=np.int8)[::-1] % 2
    problem = built(toy(y=y, domains=y, attributes={"bright": (bright, bright)}), monkeypatch)
    assert problem.y.tolist() == LABELS.tolist()
    assert problem.attributes["bright"][0].tolist() == bright.tolist()


def test_an_array_of_the_usual_layout_is_not_copied() -> None:
    assert np.shares_memory(toy().x_train, PIXELS)


def test_rows_of_different_lengths_are_refused() -> None:
    with pytest.raises(
        UserError, match=r"^data set 'toy': x_train holds rows of different lengths, expected an array$"
    ):
        toy([[0.0, 1.0], [0.5]], 1.0)


def test_masked_values_and_inputs_of_no_number_are_refused() -> None:
    with pytest.raises(UserError, match=r"^data set 'toy': x_train has masked values, expected an array without$"):
        toy(np.ma.masked_array(UNIT, UNIT.max() == UNIT), 1.0)
    with pytest.raises(UserError, match=r"x_train is \[12, 0\], expected inputs of 1 number or more$"):
        toy(np.zeros((12, 0), np.float32), 1.0)


def test_a_loader_that_draws_other_samples_is_refused() -> None:
    rng = np.random.default_rng(0)

    def drawn(data_dir: Path | None = None) -> Dataset:
        return toy(rng.random(UNIT.shape, np.float32), 1.0)

    def steady(data_dir: Path | None = None) -> Dataset:
        return toy()

    for _ in range(2):
        load_from(steady, None)
    said = (
        r"^dataset \S+drawn \(test_dataset\.py:\d+\) returned other samples than before, allowed: the same at each call"
    )
    with pytest.raises(UserError, match=said):
        load_from(drawn, None)
