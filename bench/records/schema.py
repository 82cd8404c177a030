"""Records: one JSON object a trial, named by the hash of its fully resolved configuration.

Schema 6. Keys, in order:

    schema, key                   version of this layout; sha256 of the identity below, 20 hex digits
    trial                         key of the trial: the same without `reading`; and how many records the trial gave, one
                                  for each reading, without all of which it counts for nothing
    problem                       data set, its checksum and provenance, model, partition, clients, how many of
                                  them are corrupted when attacked, how many the server expects
    defense, attack, goal         what met what; goal is what an inference attack is after, attack `none` is a run in
                                  which everybody was honest
    party, form, knows, reading   who attacked, and how; `reading` is the way the party looked at what it saw, `knows`
                                  what corrupted clients know
    seed, status, reason          status is ok, n/a, diverged or failed; the last three carry a reason
    metrics                       what the judge measured
    series                        by name, what it measured round by round: [round, value]; and `roc`, of rankings:
                                  [false positive rate, true positive rate]
    scores                        leak and privacy, or integrity, in [0, 1]
    utility                       accuracy of the defended, unattacked model and of FedAvg on the same problem
    attacked                      of poisoned runs: accuracy by round, and what the server made of the uploads by round;
                                  from when on it may do harm, and strengths that follow from a formula of the attack's
    tuned                         of attacks that chose their strength: what they tried and chose, and as `ran_with`
                                  the attack's options of the run, where `options` holds those that were given
    marks                         what must stand beside every number, such as that something was simulated
    guarantees                    what the protocol promises, such as epsilon and delta
    cost                          bytes_up, bytes_down per client and round; seconds of the training, attack_seconds of
                                  the attack and its judgement; peak_bytes of a client: what comes down, what it
                                  keeps, its batch and all tensors of its step, as `--client-memory` limits them
    options, versions             every option, resolved; version of every method
    origins                       of methods that are not this package's own, who they come from
    environment                   package, Python and library versions, machine, commit
    sum                           in the file alone: sha256 of all of the above, 20 hex digits, so that a record that
                                  was changed after it was written is no record

The identity is everything that determines the result: problem, defense, attack, party, form, knows, reading,
seed, options, versions, device. Timings, memory and environment are not in it, and neither is the
number of workers.
"""

from __future__ import annotations

from typing import Any

SCHEMA = 6
VOLATILE = ("cost.seconds", "cost.attack_seconds", "cost.relative_seconds", "environment", "sum")
"""What may differ between two runs of one configuration."""

STATUSES = ("ok", "n/a", "diverged", "failed")

Record = dict[str, Any]
