"""The leaderboard: what records say of every defense, as data (`board`), scores (`standing`), tables and pages."""
