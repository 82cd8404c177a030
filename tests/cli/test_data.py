"""`bench data`: the table, verification and fetching, as a user meets them."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedarena.cli import data
from fedarena.core import registry
from fedarena.core.card import Card
from fedarena.core.errors import UserError
from fedarena.datasets import fetch as fetching
from fedarena.datasets.archive import Archive

Bench = Callable[..., tuple[int, str]]


@pytest.fixture
def bench(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """Run `bench data …` with an empty cache; gives the exit code and stdout."""
    monkeypatch.delenv("FEDARENA_DATA", raising=False)
    monkeypatch.setenv("FEDARENA_CACHE", str(tmp_path / "cache"))

    def call(*words: str) -> tuple[int, str]:
        parser = argparse.ArgumentParser()
        data.add_parser(parser.add_subparsers(required=True))
        args = parser.parse_args(["data", *words])
        code: int = args.run(args)
        return code, capsys.readouterr().out

    return call


def rows(output: str) -> dict[str, dict[str, Any]]:
    return {row["name"]: row for row in json.loads(output)["datasets"]}


def put(folder: Path, **changes: np.ndarray) -> Path:
    """A subset of USPS with 5 + 2 images."""
    folder.mkdir(exist_ok=True)
    arrays = {
        "x_train": np.zeros((5, 16, 16), np.uint8),
        "y_train": np.arange(5),
        "x_test": np.full((2, 16, 16), 255, np.uint8),
        "y_test": np.arange(2),
    }
    np.savez(folder / "usps.npz", **(arrays | changes))
    return folder


def test_the_table_tells_embedded_present_and_absent(bench: Bench, tmp_path: Path) -> None:
    folder = put(tmp_path / "here")
    code, out = bench("--json", "--data-dir", str(folder))
    assert code == 0
    found = rows(out)
    assert set(found) == set(registry.registries()["dataset"].names())
    assert (found["digits"]["state"], found["digits"]["checksum"]) == ("embedded", "verified")
    usps = found["usps"]
    assert (usps["state"], usps["train"], usps["test"], usps["checksum"]) == ("present", 5, 2, "unknown")
    assert usps["subset"] == "5 of 7291 training images, 2 of 2007 test images"
    assert usps["path"] == str(folder / "usps.npz")
    assert (found["mnist"]["state"], found["mnist"]["train"], found["mnist"]["path"]) == ("absent", 60000, None)
    code, out = bench("--data-dir", str(folder))
    assert code == 0
    for word in ("usps", "5 of 7291 training images", "absent", "embedded", "CC BY-SA 3.0", "1×28×28"):
        assert word in out


def test_options_hold_before_and_after_the_action(bench: Bench, tmp_path: Path) -> None:
    folder = str(put(tmp_path / "here"))
    before = bench("--json", "--data-dir", folder, "verify", "usps")
    assert before == bench("verify", "usps", "--json", "--data-dir", folder)
    assert rows(before[1])["usps"]["state"] == "present"


def test_verify_passes_what_is_whole_and_fails_what_is_not(bench: Bench, tmp_path: Path) -> None:
    folder = put(tmp_path / "here")
    assert bench("verify", "--data-dir", str(folder))[0] == 0
    put(folder, y_train=np.full(5, 11))
    code, out = bench("verify", "--data-dir", str(folder))
    assert code == 1
    assert "labels from 11 to 11" in out
    path = folder / "usps.npz"
    path.write_bytes(path.read_bytes()[:500])
    code, out = bench("verify", "usps", "--json", "--data-dir", str(folder))
    assert code == 1
    assert rows(out)["usps"]["state"] == "damaged"
    assert "usps.npz is damaged" in rows(out)["usps"]["problem"]


def test_verify_fails_a_file_that_its_sidecar_contradicts(bench: Bench, tmp_path: Path) -> None:
    folder = put(tmp_path / "here")
    (folder / "usps.npz.sha256").write_text("0" * 64 + "  usps.npz\n")
    code, out = bench("verify", "usps", "--json", "--data-dir", str(folder))
    assert code == 1
    assert rows(out)["usps"]["checksum"] == "mismatch"


def test_verify_of_an_absent_one_says_where_to_put_it(bench: Bench) -> None:
    with pytest.raises(UserError, match=r"'mnist' is absent: put mnist\.npz into .*bench data fetch mnist"):
        bench("verify", "mnist")


def test_unknown_names_and_folders_are_refused(bench: Bench, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="unknown dataset 'mnst'; did you mean"):
        bench("verify", "mnst")
    with pytest.raises(UserError, match="unknown dataset 'mnst'; did you mean"):
        bench("fetch", "mnst")
    with pytest.raises(UserError, match="--data-dir"):
        bench("--data-dir", str(tmp_path / "nowhere"))


def test_fetch_refuses_what_needs_no_file_and_bad_timeouts(bench: Bench) -> None:
    with pytest.raises(UserError, match="'digits' needs no file"):
        bench("fetch", "digits")
    for text in ("0", "-1", "nan", "soon", "inf"):
        with pytest.raises(UserError, match=f"'--timeout' is '{text}'"):
            bench("fetch", "mnist", "--timeout", text)


def offline(folder: Path) -> Any:
    raise OSError("Name or service not known")


@pytest.fixture
def usps_from(monkeypatch: pytest.MonkeyPatch) -> Callable[[Any], None]:
    """Replace the download of USPS, whose card stays as it is."""
    card = registry.find("dataset", "usps")
    spec = card.load().spec
    original = Card.load

    def use(download: Any) -> None:
        monkeypatch.setattr(Card, "load", lambda self: Archive(spec, download) if self is card else original(self))

    return use


def test_without_network_one_line_and_nothing_left(
    bench: Bench, tmp_path: Path, usps_from: Callable[[Any], None]
) -> None:
    usps_from(offline)
    with pytest.raises(
        UserError, match=r"cannot download 'usps' \(OSError: Name or service not known\): put usps\.npz"
    ):
        bench("fetch", "usps")
    assert list((tmp_path / "cache").iterdir()) == []


def whole_usps(folder: Path) -> Any:
    return {
        "x_train": np.zeros((7291, 16, 16), np.uint8),
        "y_train": np.arange(7291) % 10,
        "x_test": np.zeros((2007, 16, 16), np.uint8),
        "y_test": np.arange(2007) % 10,
    }


def test_a_fetched_file_is_found_and_unchanged(
    bench: Bench, tmp_path: Path, usps_from: Callable[[Any], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    usps_from(whole_usps)
    code, out = bench("fetch", "usps")
    assert code == 0
    assert str(tmp_path / "cache" / "usps.npz") in out
    row = rows(bench("verify", "usps", "--json")[1])["usps"]
    assert (row["state"], row["checksum"], row["subset"]) == ("present", "unchanged", None)
    monkeypatch.setattr(fetching, "_in_a_process", lambda *args: pytest.fail("fetched again"))
    assert json.loads(bench("fetch", "usps", "--json")[1])["downloaded"] is False


def test_fetch_says_when_another_file_comes_first(
    bench: Bench, tmp_path: Path, usps_from: Callable[[Any], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    usps_from(whole_usps)
    monkeypatch.setenv("FEDARENA_DATA", str(put(tmp_path / "mine")))
    told = json.loads(bench("fetch", "usps", "--json")[1])
    assert told["shadowed_by"] == str(tmp_path / "mine" / "usps.npz")
