"""The regression gate: has a score changed by more than its noise, and is anything missing?

From the bottom:

- Tests of scores: `jumps` (scores that leap between seeds), `contrast` (one score before and after), `moderated`
  (variances from few seeds), `holm` (many tests at once), `judge` (the test), `means` (many cells that move together).
- Changes that are compared exactly: `change`, `cell_changes`, `clean_run_changes`, `board_changes`, and `inert`
  (methods that no longer have any effect).
- `comparison` (the result), `compare` (all of it), and its outputs `wording`, `markdown` and `junit`.
"""
