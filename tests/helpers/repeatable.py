"""Records without the fields in which two runs may differ."""

from __future__ import annotations

import json
from typing import Any

from fedarena.records.schema import VOLATILE


def repeatable(records: Any) -> list[dict[str, Any]]:
    content: list[dict[str, Any]] = json.loads(json.dumps(list(records)))
    for record in content:
        for path in VOLATILE:
            group, _, name = path.rpartition(".")
            (record[group] if group else record).pop(name, None)
    return content
