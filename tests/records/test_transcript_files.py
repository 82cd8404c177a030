"""What crossed the wires, as files for others' tools: whole, readable without this package, and what was seen alone."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
from helpers.attacked import asked_of_model
from torch import Tensor

import fedarena as fa
from fedarena.cli import main
from fedarena.contracts.transcript import Round, Seen, cut, weights
from fedarena.core import registry
from fedarena.core.card import Kind
from fedarena.core.rng import Rng
from fedarena.core.tensors import row
from fedarena.core.threat import PARTIES, Threat
from fedarena.federation import compose, rounds
from fedarena.federation.finished_run import FinishedRun
from fedarena.federation.spec import GroupSpec, MethodSpec, TranscriptFolder
from fedarena.problem.problem import build
from fedarena.problem.schedule import Schedule
from fedarena.problem.spec import ProblemSpec
from fedarena.records.saved_transcript import Transcript, read_transcript
from fedarena.records.transcript_files import crossed, write_transcript

KINDS: tuple[Kind, ...] = ("defense", "secure")
WITHOUT_SERVER = ("d-sgd", "dbcl-peers", "dp-peers")
PROTOCOLS = [name for kind in KINDS for name in registry.registries()[kind].names()]
Saved = tuple[Path, FinishedRun]
QUICK: dict[str, Any] = {"rounds": 6, "attack.victims": 1, "attack.restarts": 1, "attack.iterations": 5, "jobs": 1}
LOSS = Schedule().loss
WORDS = [f"--set={name}={value}" if "." in name else f"--{name}={value}" for name, value in QUICK.items()]


def finished_run(defense: str, **schedule: Any) -> FinishedRun:
    """A run of five clients, all rounds of which are written down."""
    cards = compose.defense_cards(defense)
    usual = dict(cards[0].usual)
    model = registry.find("model", "mlp").parse({"widths": "8", **asked_of_model(defense)})
    schedule = {"rounds": 3, "batch_size": 2, "lr_schedule": "cosine", "loss": usual.get("loss", LOSS), **schedule}
    problem_spec = ProblemSpec(
        "digits", model="mlp", partition="iid", clients=5, model_options=model, schedule=Schedule(**schedule)
    )
    spec = GroupSpec(
        problem_spec,
        defense=compose.parse(cards, {}, {}),
        attack=MethodSpec("dlg", registry.find("attack", "dlg").parse({})),
        threats=(Threat("server", "paper"),),
        seed=0,
    )
    problem = build(spec.problem, spec.root, spec.data_dir, spec.device, compose.auxiliary(spec.defense))
    protocol = compose.make_defense(spec.defense, problem.task)
    run = rounds.run(protocol, problem, Rng(spec.root).child("federation"), watch=range(3))
    return FinishedRun(spec, problem, protocol, run)


def write(finished: FinishedRun, folder: Path, truth: bool) -> Path:
    return write_transcript(finished, [finished.spec], TranscriptFolder(folder, truth))


@pytest.fixture(scope="module", params=["fedavg", "pairwise-masks"])
def saved(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Saved:
    """A protocol whose uploads are in clear, and one of which the server sees a sum alone; with the truth."""
    finished = finished_run(request.param, participation=0.6)
    return write(finished, tmp_path_factory.mktemp(request.param), truth=True), finished


def assert_equal(found: Mapping[str, Tensor], expected: Mapping[str, Tensor]) -> None:
    assert set(found) == set(expected)
    for name, t in expected.items():
        assert found[name].dtype == t.dtype
        assert torch.equal(found[name], t)


def test_what_is_read_is_what_was_played(saved: Saved) -> None:
    folder, finished = saved
    read = read_transcript(folder).rounds
    assert [r.index for r in read] == [0, 1, 2]
    for found, r in zip(read, finished.run.rounds, strict=True):
        assert (found.participants, found.averaged) == (r.participants, r.averaged or r.participants)
        assert_equal(found.broadcast, r.down)
        assert_equal(found.before, r.params)
        assert_equal(found.after, r.after)
        assert_equal(found.secret, r.secret)
        assert_equal(found.mean, r.mean or {})
        assert list(found.uploads) == list(found.batches) == list(r.participants)
        assert list(found.messages) == ([] if r.wire is None else list(r.participants))
        for i, client in enumerate(r.participants):
            assert_equal(found.uploads[client], row(r.ups, i))
            assert_equal(vars_of(found.batches[client]), vars_of(r.batches[i]))
            if r.wire is not None:
                assert_equal(found.messages[client], {"vector": r.wire[i]})


def vars_of(batch: Any) -> dict[str, Tensor]:
    return {"x": batch.x, "y": batch.y, **batch.masks}


def test_an_outside_reader_obtains_the_server_s_step(saved: Saved) -> None:
    """With safetensors, JSON and torch alone: W' = W − η Σ_c N_c up_c / Σ_c N_c, or with the mean of the secure sum."""
    folder, _ = saved
    index = json.loads((folder / "transcript.json").read_text())
    for r in index["rounds"]:
        wires = safetensors.torch.load_file(folder / r["files"]["wires"]["name"])
        server = safetensors.torch.load_file(folder / r["files"]["server"]["name"])
        sizes = {c: index["client_sizes"][c] for c in r["averaged"]}
        for name in index["model"]["parameters"]:
            if index["uploads"] == "in clear":
                step = sum(n * wires[f"upload/{c}/{name}"] for c, n in sizes.items()) / sum(sizes.values())
            else:
                step = wires[f"mean/{name}"]
            wanted = server[f"before/{name}"] - r["step_size"] * step
            torch.testing.assert_close(server[f"after/{name}"], wanted, rtol=1e-5, atol=1e-7)
            assert not torch.equal(server[f"after/{name}"], server[f"before/{name}"])


def test_the_mean_of_a_secure_sum_is_that_of_the_uploads_in_clear(saved: Saved) -> None:
    folder, finished = saved
    for r in read_transcript(folder).rounds:
        share = weights(finished.problem.task.sizes, r.participants)
        for name, mean in r.mean.items():
            ups = torch.stack([r.uploads[c][name] for c in r.participants])
            torch.testing.assert_close(torch.tensordot(share / share.sum(), ups, 1), mean, rtol=1e-4, atol=1e-6)


def tensors_of(seen: Seen, r: Round) -> dict[str, Tensor]:
    """What a view is made of, by the names of files."""
    alone = bool(r.models) and seen.own_batch is not None
    public = r.down if alone else seen.down
    named = {"broadcast": public, "before": seen.params, "secret": seen.secret, "mean": seen.mean}
    found = {f"{first}/{name}": t for first, tensors in named.items() for name, t in (tensors or {}).items()}
    for i, client in enumerate(r.participants):
        found |= {f"upload/{client}/{name}": t[i] for name, t in (seen.ups or {}).items()}
        found |= {} if seen.wire is None else {f"message/{client}/vector": seen.wire[i]}
    found |= {f"upload/0/{name}": t for name, t in (seen.own_up or {}).items()}
    found |= {f"edge/{i}-{j}/{name}": t for (i, j), sent in seen.messages.items() for name, t in sent.items()}
    found |= {f"half/{i}/{name}": t for i, half in seen.halves.items() for name, t in half.items()}
    found |= {f"node/0/{name}": t for name, t in seen.down.items()} if alone else {}
    own = seen.own_batch
    if own is None:
        return found
    masks = {f"mask/0/{name}": t for name, t in own.masks.items()}
    return found | masks | {"batch/0/x": own.x, "batch/0/y": own.y}


@pytest.mark.parametrize("party", PARTIES)
@pytest.mark.parametrize("defense", PROTOCOLS)
def test_a_party_sees_what_its_view_is_made_of(defense: str, party: Any, tmp_path: Path) -> None:
    """The server also has its next parameters, which the next round's view holds."""
    alone = defense in WITHOUT_SERVER
    finished = finished_run(defense, participation=1.0 if alone else 0.6)
    transcript = read_transcript(write(finished, tmp_path, truth=True))
    seen, expected = transcript.seen_by(party), cut(finished.run.rounds, Threat(party, "adaptive"))
    assert set(seen) == set(expected)
    for t, one in expected.items():
        found = {name: tensor for name, tensor in seen[t].items() if not name.startswith("after/")}
        assert_equal(found, tensors_of(one, finished.round(t)))
        assert (len(found) < len(seen[t])) == (party == "server")
    assert bool(expected) == (not alone or party != "server")
    assert not transcript.seen_by("outsider")


def test_what_dropout_made_of_samples_is_among_the_truth(tmp_path: Path) -> None:
    finished = finished_run("fedavg")
    first = finished.run.rounds[0]
    masks = [{"drop.mask": torch.rand(1, 2, 8, generator=Rng(0).child(c).torch())} for c in range(5)]
    batches = tuple(replace(batch, masks=mask) for batch, mask in zip(first.batches, masks, strict=True))
    finished = replace(finished, run=replace(finished.run, rounds=(replace(first, batches=batches),)))
    transcript = read_transcript(write(finished, tmp_path, truth=True))
    for client, mask in enumerate(masks):
        assert_equal(transcript.rounds[0].batches[client].masks, mask)
    assert_equal(
        transcript.rounds[0].batches[0].masks, {"drop.mask": transcript.seen_by("client")[0]["mask/0/drop.mask"]}
    )


def test_the_file_of_the_wires_holds_the_eavesdropper_s_view_alone(saved: Saved) -> None:
    folder, finished = saved
    for t, seen in cut(finished.run.rounds, Threat("eavesdropper", "adaptive")).items():
        content = safetensors.torch.load_file(folder / f"round-{t:04d}.safetensors")
        assert_equal(content, tensors_of(seen, finished.round(t)))
        assert any(name.startswith("upload/") for name in content) == (finished.defense.secure is None)


def test_without_the_truth_no_file_holds_a_sample_or_a_hidden_upload(tmp_path: Path) -> None:
    finished = finished_run("pairwise-masks")
    folder = write(finished, tmp_path, truth=False)
    names = {name for path in folder.glob("*.safetensors") for name in safetensors.torch.load_file(path)}
    assert {name.split("/")[0] for name in names} == {"broadcast", "message", "mean", "before", "after"}
    assert sorted(p.name for p in folder.iterdir()) == sorted(
        ["transcript.json", *(f"round-{t:04d}{kind}.safetensors" for t in range(3) for kind in ("", ".server"))]
    )
    assert read_transcript(folder).truth == "not written"
    (first, *_) = read_transcript(folder).rounds
    assert (first.uploads, first.batches) == ({}, {})
    assert set(read_transcript(folder).seen_by("client")[0]) == {f"broadcast/{n}" for n in first.broadcast}


def test_the_index_has_shapes_and_no_secret(tmp_path: Path) -> None:
    finished = finished_run("dbcl")
    secret = "0123456789abcdef" * 2
    hidden = replace(finished, spec=replace(finished.spec, secret=secret))
    folder = write(hidden, tmp_path, truth=False)
    text = (folder / "transcript.json").read_text()
    assert secret not in text
    shapes = json.loads(text)["rounds"][1]["shapes"]["wires"]
    content = crossed(finished.run.rounds[1])
    first = {name: t for name, t in content.items() if name.split("/")[0] == "broadcast" or "upload/0/" in name}
    assert {name: tuple(shape) for name, (_, shape) in shapes.items()} == {n: tuple(t.shape) for n, t in first.items()}
    assert {kind for kind, _ in shapes.values()} == {"int32", "float32"}


def damage(folder: Path, how: str) -> None:
    index = folder / "transcript.json"
    if how == "swapped":
        shutil.copy(folder / "round-0000.safetensors", folder / "round-0001.safetensors")
    elif how == "missing":
        (folder / "round-0001.server.safetensors").unlink()
    else:
        old, _, new = how.partition("|")
        index.write_text(index.read_text().replace(old, new))


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("swapped", "round-0001.safetensors was changed after it was written"),
        ("missing", r"^the transcript in .*fedavg-seed-0 is damaged: round-0001.server.safetensors: No such file"),
        ('"layout": 1|"layout": 7', "its layout is 7, and this version reads 1"),
        ('"participants": [|"participants": ["x",', "participants"),
        ('"layout"|"outlay"', "it has no layout"),
        ("{|[", "it is no JSON"),
    ],
)
def test_a_damaged_transcript_is_refused(how: str, said: str, tmp_path: Path) -> None:
    folder = write(finished_run("fedavg"), tmp_path, truth=False)
    damage(folder, how)
    with pytest.raises(fa.UserError, match=said):
        read_transcript(folder)


def test_a_transcript_is_read_without_the_files_of_the_truth(tmp_path: Path) -> None:
    folder = write(finished_run("fedavg"), tmp_path, truth=True)
    whole = read_transcript(folder)
    (folder / "round-0001.truth.safetensors").unlink()
    with pytest.raises(fa.UserError, match=r"round-0001.truth.safetensors: No such file"):
        read_transcript(folder)
    for path in folder.glob("*.truth.safetensors"):
        path.unlink()
    withheld = read_transcript(folder)
    assert (whole.truth, withheld.truth) == ("here", "withheld")
    assert "truth='withheld'" in repr(withheld)
    assert withheld.rounds[0].batches == {} != whole.rounds[0].batches
    assert_equal(withheld.rounds[0].wires, whole.rounds[0].wires)


def test_the_folder_above_names_those_that_it_holds(tmp_path: Path) -> None:
    write(finished_run("fedavg"), tmp_path, truth=False)
    with pytest.raises(fa.UserError, match=r"it holds those of .*fedavg-seed-0"):
        fa.read_transcript(tmp_path)
    with pytest.raises(fa.UserError, match="no transcript in nowhere"):
        fa.read_transcript("nowhere")
    with pytest.raises(fa.UserError, match="'party' is 'judge', allowed: server, client"):
        fa.read_transcript(tmp_path / "fedavg-seed-0").seen_by("judge")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, fa.Results]:
    folder = tmp_path_factory.mktemp("wires")
    return folder, fa.run("dbcl", "dlg", seeds=[0, 3], save_transcript=folder, with_truth=True, **QUICK)


def test_a_run_writes_a_folder_for_each_defense_and_seed(run: tuple[Path, fa.Results]) -> None:
    folder, results = run
    names = {f"{defense}-seed-{seed}" for defense in ("dbcl", "fedavg") for seed in (0, 3)}
    assert {path.name for path in folder.iterdir()} == names
    found: list[Transcript] = [fa.read_transcript(path) for path in folder.iterdir()]
    keys = {trial["key"] for one in found for trial in one.facts["trials"]}
    assert keys == {record["trial"]["key"] for record in results}
    for one in found:
        assert [r.index for r in one.rounds] == list(range(6))
        assert one.rounds[0].batches[0].x.shape == (1, 1, 1, 8, 8)
    assert {path.suffix for path in folder.rglob("*") if path.is_file()} == {".safetensors", ".json"}


def test_a_guess_of_an_outsider_can_be_judged_by_the_truth(run: tuple[Path, fa.Results]) -> None:
    folder, _ = run
    r = fa.read_transcript(folder / "fedavg-seed-0").rounds[0]
    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 64), torch.nn.ELU(), torch.nn.Linear(64, 10))
    for p, value in zip(model.parameters(), r.broadcast.values(), strict=True):
        p.data.copy_(value)
    batch = r.batches[1]
    loss = torch.nn.functional.cross_entropy(model(batch.x[0]), batch.y[0])
    own = torch.autograd.grad(loss, list(model.parameters()))
    for mine, theirs in zip(own, r.uploads[1].values(), strict=True):
        torch.testing.assert_close(mine, theirs)


def test_a_transcript_changes_no_record(run: tuple[Path, fa.Results]) -> None:
    _, results = run
    plain = fa.run("dbcl", "dlg", seeds=[0, 3], **QUICK)
    assert [(r["key"], r["metrics"]) for r in plain] == [(r["key"], r["metrics"]) for r in results]


@pytest.mark.parametrize(
    ("attack", "more", "said"),
    [
        ("dlg", [], "where dbcl-seed-0 is already: name another"),
        ("dlg", ["--seeds=3"], "where dbcl-seed-3 is already: name another"),
        ("sign-flip", ["--clients=5", "--corrupted=1"], "but sign-flip reads no round"),
        ("membership-inference", [], "but membership-inference reads no round"),
    ],
)
def test_what_cannot_be_written_is_refused_before_anything_runs(
    attack: str, more: list[str], said: str, run: tuple[Path, fa.Results], capsys: pytest.CaptureFixture[str]
) -> None:
    folder, _ = run
    assert main(["run", "--defense=dbcl", f"--attack={attack}", f"--save-transcript={folder}", "--quiet", *more]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1


def test_the_truth_alone_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--defense=dbcl", "--attack=dlg", "--with-truth", *WORDS]) == 2
    assert "option 'with-truth' does nothing without option 'save-transcript'" in capsys.readouterr().err


@pytest.mark.usefixtures("undrawn")
def test_workers_write_the_same_files(
    run: tuple[Path, fa.Results], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, _ = run
    words = [word for word in WORDS if not word.startswith("--jobs")]
    more = [f"--save-transcript={tmp_path / 'wires'}", f"--out={tmp_path}", "--with-truth", "--jobs=2", "--quiet"]
    assert main(["run", "--defense=dbcl", "--attack=dlg", *words, *more]) == 0
    assert f"Transcripts: {tmp_path / 'wires'}" in capsys.readouterr().out
    for path in (folder / "dbcl-seed-0").glob("*.safetensors"):
        assert (tmp_path / "wires/dbcl-seed-0" / path.name).read_bytes() == path.read_bytes()


def test_what_neighbours_sent_each_other_comes_back(tmp_path: Path) -> None:
    finished = finished_run("dbcl-peers")
    found, wanted = read_transcript(write(finished, tmp_path, truth=True)).rounds[1], finished.run.rounds[1]
    assert set(found.edges) == set(wanted.messages)
    for edge, message in wanted.messages.items():
        assert_equal(found.edges[edge], message)
    assert_equal(found.models[2], {name: t[2] for name, t in wanted.models.items()})
    assert not found.before
    assert sorted(path.name for path in (tmp_path / "dbcl-peers-seed-0").glob("round-0001*")) == [
        "round-0001.safetensors",
        "round-0001.truth.safetensors",
    ]
