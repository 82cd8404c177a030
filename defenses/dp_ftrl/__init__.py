"""DP-FTRL (Kairouz et al. 2021): a server that adds the noise of a binary tree to the sum of all rounds' updates."""
