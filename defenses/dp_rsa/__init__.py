"""DP-RSA (Zhu & Ling 2022): clients send the randomly flipped signs of W − W_local, one bit an entry."""
