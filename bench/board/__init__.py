"""The leaderboard: what records say of every defense, as data (`board`), scores (`ranking`), tables and pages."""
