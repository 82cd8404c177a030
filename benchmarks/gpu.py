"""One GPU against the CPU: rounds, shadow models, gradients and forward passes a second, and how far numbers agree.

    python gpu.py                        # every part on the GPU, and its work on the CPU beside it
    python gpu.py --device cpu           # every part in small and on the CPU alone, to see that it runs
    python gpu.py --only dlg,baffle      # some parts

Each part runs in a process of its own, which is ended at the part's bound (`--bound SECONDS`: one bound for all). A
result is printed as soon as it is there, and the JSON file is written anew after each part. A part that fails or is
ended says so in one line, and the next one runs.

Images are those of CIFAR-10 (`--data FOLDER`, else $FEDARENA_DATA). Where the file is missing, 50,000 random ones of
the same shape take their place. They are dealt out to 100 clients. A round is one local epoch of ten clients, in
batches of 32: 15 steps each with all 50,000 images, 4 with the subset of 15,000. A rate is by wall time on either
device. On the CPU a round of networks with convolutions is computed for one client and counted as a tenth.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from gpu_parts import PARTS
from gpu_tools import Settings
from side_by_side import machine


def child(part: str, settings: Settings) -> None:
    """Carry out one part, and print each result as a line of JSON."""
    try:
        for result in PARTS[part][0](settings):
            print(json.dumps(asdict(result)), flush=True)
    except Exception as error:
        print(json.dumps({"error": f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"}), flush=True)
        raise


def carried_out(part: str, words: Sequence[str], bound: float) -> Iterator[dict[str, Any]]:
    """The lines of a part in a process of its own, at the end one with an error if it has none of its own."""
    command = [sys.executable, __file__, "--part", part, *words]
    with tempfile.TemporaryFile("w+") as complaints:
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=complaints, text=True, start_new_session=True
        )
        late = threading.Event()

        def end() -> None:
            late.set()
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)

        timer, failed = threading.Timer(bound, end), False
        timer.start()
        assert process.stdout is not None
        try:
            for line in process.stdout:
                found = json.loads(line) if line.startswith("{") else {}
                failed = failed or "error" in found
                if found:
                    yield found
        finally:
            code = process.wait()
            timer.cancel()
        if late.is_set():
            yield {"error": f"ended at its bound of {bound:g} s"}
        elif code and not failed:
            complaints.seek(0)
            yield {"error": (complaints.read().strip().splitlines() or [f"ended with code {code}"])[-1][:300]}


def main() -> int:
    """1 if a part failed, else 0."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cuda", "cpu"), help="default: cuda where there is one")
    parser.add_argument("--data", type=Path, metavar="FOLDER", help="where cifar10.npz is")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results here, after each part")
    parser.add_argument("--only", metavar="PART,...", help=f"of {', '.join(PARTS)}")
    parser.add_argument("--bound", type=float, metavar="SECONDS", help="for every part, in place of its own")
    parser.add_argument("--part", help=argparse.SUPPRESS)
    given = parser.parse_args()
    device = given.device or ("cuda" if torch.cuda.is_available() else "cpu")
    if given.part:
        child(given.part, Settings(device, given.data))
        return 0
    wanted = list(PARTS) if given.only is None else given.only.split(",")
    if unknown := [name for name in wanted if name not in PARTS]:
        parser.error(f"no part is called {', '.join(unknown)}: {', '.join(PARTS)}")
    words = ["--device", device, *(["--data", str(given.data)] if given.data else [])]
    here = machine() | {"gpu": torch.cuda.get_device_name() if device == "cuda" else "none"}
    print(", ".join(f"{k} {v}" for k, v in here.items()) + ("; IN SMALL" if device == "cpu" else "") + "\n")
    print("| work | form | where | | | |\n|---|---|---|---|---|---|", flush=True)
    parts: dict[str, dict[str, Any]] = {}
    for name in wanted:
        began, rows, why = time.perf_counter(), [], ""
        for found in carried_out(name, words, given.bound or PARTS[name][1]):
            if "error" in found:
                why = found["error"]
                print(f"| {name} | FAILED | | | | {why} |", flush=True)
            else:
                rows.append(found)
                cells = (found["what"], found["form"], found["where"], f"{found['value']:.3g}", found["unit"])
                print("| " + " | ".join((*cells, found["note"])) + " |", flush=True)
        parts[name] = {"seconds": round(time.perf_counter() - began, 1), "error": why, "results": rows}
        if given.json:
            given.json.write_text(json.dumps({"machine": here, "device": device, "parts": parts}, indent=2) + "\n")
    return 1 if any(part["error"] for part in parts.values()) else 0


if __name__ == "__main__":
    raise SystemExit(main())
