"""Runs an inference attack of another package in a process of its own.

That process gets the view, the attack with its options and its seed. It has no truth, no specification and no seed of
the run. Its answer comes back as plain tensors and numbers, of which this process builds the answer anew.
"""

from __future__ import annotations

import io
import math
import os
import time
from collections.abc import Callable
from dataclasses import fields
from typing import Any, get_type_hints

import torch
from torch import Tensor

from fedarena.contracts import inference
from fedarena.contracts.inference import Answer
from fedarena.contracts.view import View
from fedarena.core.errors import ToldByProcess, type_of, with_article
from fedarena.core.fresh_process import ask
from fedarena.core.request_loop import Say
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors
from fedarena.core.threat import NotApplicable
from fedarena.federation import compose
from fedarena.federation.spec import MethodSpec

PARTS = {
    part.__name__: part
    for part in (
        inference.Reconstruction,
        inference.Scores,
        inference.Labels,
        inference.Extraction,
        inference.GradientEstimate,
        inference.Portraits,
        inference.PropertyScores,
        inference.Sources,
        NotApplicable,
    )
}
"""What answers are made of, by name."""
PAUSE = 0.05
"""The least number of seconds between two messages about progress."""


def answer_of(
    attack: MethodSpec, view: View, rng: Rng, device: str, progress: Callable[[float, str], None]
) -> tuple[Answer | NotApplicable, float]:
    """The attack's answer, and the CPU seconds that it took. Raises ToldByProcess."""
    began = time.monotonic()
    data = ask(
        "fedarena.runs.sealed_attack",
        (attack, view, rng),
        device,
        lambda message: progress(_share(message[0]), str(message[1])),
    )
    most = (time.monotonic() - began) * (os.cpu_count() or 1)
    try:
        content = torch.load(io.BytesIO(data), weights_only=True)
        answer: Any = content["answer"]
        read = [_read(*one) for one in answer] if isinstance(answer, list) else _read(*answer)
        return read, _seconds(content["seconds"], most)
    except Exception as error:
        raise ToldByProcess(f"the attack's answer is none: {' '.join(str(error).split())[:300]}") from None


def _share(value: Any) -> float:
    """A share of the work, from 0 to 1. The attack's process could say anything."""
    return min(1.0, max(0.0, float(value))) if math.isfinite(value) else 0.0


def _seconds(value: Any, most: float) -> float:
    """A CPU time. Raises ValueError where it is none, or longer than all cores could work meanwhile."""
    if type(value) is not float or not 0 <= value <= most:
        raise ValueError(f"its time is {value} s, where {most:.0f} s are possible")
    return value


def _read(name: str, values: dict[str, Any]) -> Any:
    """A part of an answer, from its plain form. Raises ValueError for a value of the wrong type."""
    hints = get_type_hints(PARTS[name])
    for field, value in values.items():
        if not _fits(value, hints[field]):
            raise ValueError(f"{field} of {with_article(name)} is {type_of(value)}")
    return PARTS[name](**values)


def _fits(value: Any, hint: Any) -> bool:
    if hint == Tensors:
        return type(value) is dict and all(type(k) is str and type(v) is Tensor for k, v in value.items())
    return type(value) is hint or (hint == float | None and (value is None or type(value) is float))


def _plain(answer: Any) -> Any:
    """The plain form of an answer. Raises TypeError for what is none."""
    if isinstance(answer, list | tuple):
        return [_plain_part(one) for one in answer]
    return _plain_part(answer)


def _plain_part(part: Any) -> tuple[str, dict[str, Any]]:
    for name, kind in PARTS.items():
        if isinstance(part, kind):
            hints = get_type_hints(kind)
            return name, {f.name: _plain_value(getattr(part, f.name), hints[f.name]) for f in fields(kind)}
    raise TypeError(f"an attack answered with {type_of(part)}, allowed: {', '.join(PARTS)}, or a list of them")


def _plain_value(value: Any, hint: Any) -> Any:
    if isinstance(value, Tensor):
        return value.detach().clone() if hint is Tensor else _plain_value(value.item(), hint)
    if hint == Tensors:
        return {str(name): _plain_value(t, Tensor) for name, t in value.items()}
    return value if value is None or hint is Tensor else (float if hint == float | None else hint)(value)


def work(request: Any, say: Say) -> bytes:
    """Run the attack, in the process of its own."""
    attack, view, rng = request
    method, last = compose.make_inference(attack), 0.0

    def progress(share: float, text: str) -> None:
        nonlocal last
        if time.monotonic() - last >= PAUSE:
            last = time.monotonic()
            say([float(share), str(text)])

    began = time.process_time()
    answer = _plain(method(view, rng, progress))
    file = io.BytesIO()
    torch.save({"answer": answer, "seconds": time.process_time() - began}, file)
    return file.getvalue()
