"""ATS (Gao et al. 2021): clients transform their samples before they compute a gradient."""
