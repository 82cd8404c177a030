"""Downloads: all or nothing, in a bounded time, whatever happens on the way. No network is touched."""

from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np
import pytest

from fedarena.core.errors import UserError
from fedarena.datasets.archive import Archive, ByHand
from fedarena.datasets.cards.spec import File, Spec
from fedarena.datasets.checksum import check, sidecar
from fedarena.datasets.fetch import fetch, fetchable
from fedarena.datasets.npz import Arrays

SPEC = Spec(
    "toy", title="Toy", n_train=6, n_test=3, licence="none", files=(File("toy.npz", shape=(1, 4, 4), n_classes=10),)
)


def arrays(n_train: int = 6) -> Arrays:
    return {
        "x_train": np.arange(n_train * 16, dtype=np.uint8).reshape(n_train, 4, 4),
        "y_train": np.arange(n_train),
        "x_test": np.zeros((3, 4, 4), np.uint8),
        "y_test": np.zeros(3, np.int64),
    }


# Downloads run in a fresh process, which imports them from this module by name.


def good(folder: Path) -> Arrays:
    print("a library that talks")
    (folder / "raw.gz").write_bytes(b"raw")
    return arrays()


def short(folder: Path) -> Arrays:
    return arrays(5)


def wrong(folder: Path) -> Arrays:
    return {**arrays(), "x_train": np.zeros((6, 4, 5), np.uint8)}


def offline(folder: Path) -> Arrays:
    (folder / "half").write_bytes(b"half")
    raise OSError("Name or service\nnot known")


def silent(folder: Path) -> Arrays:
    time.sleep(600)
    raise AssertionError("never reached: the process is ended")


def dies(folder: Path) -> Arrays:
    os._exit(7)


def test_a_download_is_complete_checked_and_leaves_nothing_else(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    archive, folder = Archive(SPEC, good), tmp_path / "new" / "cache"
    done = fetch(archive, folder)
    assert done.downloaded
    assert sorted(p.name for p in folder.iterdir()) == ["toy.npz", "toy.npz.sha256"]
    data = archive(folder)
    assert not data.provenance.verified
    assert data.provenance.source.endswith("complete, downloaded")
    assert data.provenance.subset is None
    assert np.array_equal(data.x_train[:, 0], arrays()["x_train"])
    assert capfd.readouterr() == ("", "")
    again = fetch(Archive(SPEC, offline), folder)  # what is intact is not fetched again
    assert not again.downloaded


@pytest.mark.parametrize(
    ("download", "words"),
    [
        (offline, "OSError: Name or service not known"),
        (dies, "exit code 7"),
        (short, "5 of 6 training images"),
        (wrong, "x_train is uint8 [6, 4, 5]"),
    ],
)
def test_a_failed_download_leaves_nothing_and_says_one_line(download: object, words: str, tmp_path: Path) -> None:
    with pytest.raises(UserError) as caught:
        fetch(Archive(SPEC, download), tmp_path)  # type: ignore[arg-type]
    message = str(caught.value)
    assert words in message
    assert "\n" not in message
    assert list(tmp_path.iterdir()) == []


def test_what_can_be_fetched_has_a_download() -> None:
    assert set(fetchable()) == {
        *("bank-marketing", "cifar10", "cifar100", "fashion-mnist", "kmnist", "mnist", "olivetti", "usps")
    }


def test_the_failure_says_which_file_to_put_where(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"put toy\.npz \(x_train uint8 \[6, 4, 4\].*FEDARENA_DATA") as caught:
        fetch(Archive(SPEC, offline), tmp_path)
    assert str(tmp_path) in str(caught.value)


def test_what_nobody_offers_is_refused_at_once_and_kept_where_it_is(tmp_path: Path) -> None:
    alone = Archive(SPEC, ByHand("there is none"))
    folder = tmp_path / "cache"
    with pytest.raises(UserError, match=r"cannot download 'toy' \(there is none\): put toy\.npz \(x_train uint8 \[6"):
        fetch(alone, folder)
    assert not folder.exists()
    np.savez(tmp_path / "toy.npz", **arrays())
    assert not fetch(alone, tmp_path).downloaded


TABLE = Spec(
    "rows",
    title="Rows",
    n_train=4,
    n_test=2,
    licence="none",
    files=(File("rows.npz", shape=(3,), n_classes=2, lacks="colour"),),
)


def rows(folder: Path) -> Arrays:
    x = np.arange(18, dtype=np.float32).reshape(6, 3)
    return {"x_train": x[:4], "y_train": np.arange(4) % 2, "x_test": x[4:], "y_test": np.arange(2)}


def test_a_table_is_fetched_as_it_is_and_scaled_when_it_is_loaded(tmp_path: Path) -> None:
    archive = Archive(TABLE, rows)
    done = fetch(archive, tmp_path)
    assert done.downloaded
    with np.load(done.path) as raw:
        assert raw["x_train"].max() == 11
    data = archive(tmp_path)
    assert data.x_train[:, 1].tolist() == pytest.approx([0, 1 / 3, 2 / 3, 1])
    assert data.x_test.min() == 1  # beyond the training part: cut
    assert not data.provenance.verified
    assert data.provenance.source.endswith("complete, downloaded")
    assert data.provenance.subset == "colour"
    with pytest.raises(
        UserError, match=r"put rows\.npz \(x_train float32 \[4, 3\], y_train int64 \[4\], x_test float32"
    ):
        fetch(Archive(TABLE, offline), tmp_path / "elsewhere")


def test_a_silent_network_does_not_hang(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"nothing complete after 0\.2 s"):
        fetch(Archive(SPEC, silent), tmp_path, timeout=0.2)
    assert list(tmp_path.iterdir()) == []


def test_a_failed_download_leaves_what_was_there(tmp_path: Path) -> None:
    (tmp_path / "toy.npz").write_bytes(b"damaged")
    with pytest.raises(UserError):
        fetch(Archive(SPEC, offline), tmp_path)
    assert [p.read_bytes() for p in tmp_path.iterdir()] == [b"damaged"]
    fetch(Archive(SPEC, good), tmp_path)
    assert check(tmp_path / "toy.npz", SPEC.files[0]).state == "unchanged"


def test_a_users_own_subset_is_kept_and_told(tmp_path: Path) -> None:
    np.savez(tmp_path / "toy.npz", **arrays(4))
    done = fetch(Archive(SPEC, good), tmp_path)
    assert not done.downloaded
    assert done.subset == "4 of 6 training images"


def test_an_old_sidecar_does_not_outlive_its_file(tmp_path: Path) -> None:
    path = tmp_path / "toy.npz"
    np.savez(path, **arrays())
    sidecar(path).write_text("0" * 64 + "  toy.npz\n")
    assert fetch(Archive(SPEC, good), tmp_path).downloaded
    assert check(path, SPEC.files[0]).state == "unchanged"


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="cannot write data into folder"):
        fetch(Archive(SPEC, good), tmp_path / "file" / "cache")
