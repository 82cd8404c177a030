"""The identity of a trial: everything that determines its result, known before it is run.

The key of a trial is a hash of its identity (`fedarena.records.trial_key`). By the key a trial is found again and not
run twice.
"""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from typing import Any

from fedarena.core import registry
from fedarena.core.card import Kind
from fedarena.core.threat import Threat
from fedarena.datasets.dataset import Provenance
from fedarena.federation import compose
from fedarena.federation.spec import GroupSpec, MethodSpec
from fedarena.records.schema import DataSource, Identity


def identity_of(spec: GroupSpec, threat: Threat | None, data: Provenance) -> Identity:
    """The identity of the trial of a threat.

    Args:
        threat: None for a run without an attack.
        data: where the data set of the problem came from, with its checksum.
    """
    problem, attack = spec.problem, spec.attack
    return {
        "problem": {
            "dataset": problem.dataset,
            "data": _data_source(data),
            "model": problem.model,
            "partition": problem.partition,
            "clients": problem.clients,
            "corrupted": problem.corrupted,
            "corrupted_data": problem.corrupted_data,
            "assumed_corrupted": problem.assumed_corrupted_or_default,
            "device": spec.device,
        },
        "defense": spec.defense.label,
        "attack": attack.label if attack else "none",
        "party": threat.party if threat else "",
        "form": threat.form if threat else "",
        "attacker_knowledge": (threat.knows or "") if threat else "",
        "seed": spec.seed,
        "options": {
            **options_of("defense", spec.defense),
            **options_of("attack", attack),
            **options_of("probe", compose.trigger_of(spec.probe)),
            **problem.options(),
        },
        "versions": {
            **versions_of("defense", spec.defense),
            **versions_of("attack", attack),
            **{kind: card.version for kind, card in problem.cards().items()},
        },
    }


def _data_source(data: Provenance) -> DataSource:
    return {
        "source": data.source,
        "file": data.file,
        "sha256": data.sha256,
        "verified": data.verified,
        "subset": data.subset,
    }


def options_of(kind: str, method: MethodSpec | None) -> dict[str, Any]:
    """The options of a method under its kind, and those of its further parts under `kind+name`."""
    if method is None:
        return {}
    return {kind: asdict(method.options), **{f"{kind}+{p.name}": asdict(p.options) for p in method.rest}}


def versions_of(kind: Kind, method: MethodSpec | None) -> dict[str, int]:
    """The version of a method under its kind, and those of its further parts under `kind+name`."""
    if method is None:
        return {}
    part = registry.find_part if kind == "defense" else partial(registry.find, kind)
    further = {f"{kind}+{p.name}": part(p.name).version for p in method.rest}
    return {kind: registry.find(kind, method.name).version, **further}


def origins_of(spec: GroupSpec) -> dict[str, str]:
    """Where the methods come from that are not this package's own: "distribution 1.2 (authors)" by method."""
    kinds: list[tuple[Kind, MethodSpec]] = [("defense", MethodSpec(spec.defense.name))]
    kinds += [(registry.find_part(p.name).kind, p) for p in spec.defense.rest]
    kinds += [("attack", p) for p in ((spec.attack, *spec.attack.rest) if spec.attack else ())]
    origins = {}
    for kind, part in kinds:
        claim = registry.registries()[kind].entry(part.name)
        if claim.origin != "fedarena":
            authors = registry.find(kind, part.name).authors
            origins[part.name] = claim.origin + (f" ({authors})" if authors else "")
    return origins
