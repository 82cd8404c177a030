"""The leaderboard: what records say of every defense, as data (`board`), as scores (`standing`), as tables and pages."""
