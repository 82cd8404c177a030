"""DP-SGD (Abadi et al. 2016) with noise that every client adds by itself."""
