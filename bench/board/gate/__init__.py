"""The regression gate: two boards, cell by cell. Has a score changed by more than its noise, and is anything missing?

From the bottom: `moderated` (variances of few seeds), `jumps` (scores that leap between seeds), `holm` (many tests at
once), `contrast` (one score before and after), `judge` (the test), `means` (many cells that move together), `exact`
(what is compared without a test), `inert` (methods that do nothing any more), `compare` (all of it), `markdown` and
`junit` (what a pull request is shown).
"""
